"""How is the trouble that logs tell put into words?"""

from __future__ import annotations

import math
import signal
from collections.abc import Mapping, Sequence

from train_ledger.ledger import XIDS, xid, xid_level
from train_ledger.render import harmless, moment, ranks_in_brief
from train_ledger.sources import Incident

__all__ = ["cause_in_brief", "incident_in_words", "worst_first"]

_LONGEST_SAID = 200
_LONGEST_IN_VERDICT = 70
_LEVELS = ("page", "record", "ignore")
_COSTLIEST_FIRST = tuple(XIDS[code].action for code in (79, 48, 46, 74))
"""Reboot the host, take it out, reset the GPU, see to a link: among XIDs that page, what is to be done says
how bad they are."""


def cause_in_brief(incidents: Sequence[Incident]) -> str:
    """What most likely came first: what, on whom, and what was raised; `incidents` holds one at least."""
    first, raised = _cause(incidents)
    return harmless(f"{_what(first)}{_who(first)}") + _raised(raised)


def _cause(incidents: Sequence[Incident]) -> tuple[Incident, Incident]:
    """The launcher's root cause, or else what was told first; and what says how it came to that.

    That is what the rank itself raised, or what nobody in particular did where there is one such exception.
    An XID that pages nobody is told first where nothing else is: programs that crash cause them.
    """
    root = next((it for it in incidents if it.first.details.get("root")), None)
    if root is None:
        first = next((it for it in worst_first(incidents) if _is_cause(it)), worst_first(incidents)[0])
        return first, first
    raised = [it for it in incidents if "type" in it.first.details and not _is_lost_peer(it)]
    of_rank = [it for it in raised if it.ranks & root.ranks]
    of_nobody = [it for it in raised if not it.ranks and root.first.fault == "exception"]
    if of_rank:
        return of_rank[0], of_rank[0]
    return root, of_nobody[0] if len(of_nobody) == 1 else root


def worst_first(incidents: Sequence[Incident]) -> list[Incident]:
    """In their order, but XIDs change places, so that the worst of them is the first of them."""
    xids = iter(sorted((it for it in incidents if it.first.fault == "xid"), key=_seriousness))
    return [next(xids) if it.first.fault == "xid" else it for it in incidents]


def _seriousness(it: Incident) -> tuple[int, int]:
    code, text = _code(it), str(it.first.details.get("text", ""))
    level, action = xid_level(code, text, times=it.times), xid(code).action
    is_ranked = level == "page" and action in _COSTLIEST_FIRST
    cost = _COSTLIEST_FIRST.index(action) if is_ranked else len(_COSTLIEST_FIRST)
    return _LEVELS.index(level), cost


def _code(it: Incident) -> int:
    code = it.first.details.get("code")
    return code if isinstance(code, int) else -1


def _is_cause(it: Incident) -> bool:
    if it.first.fault == "xid":
        return _seriousness(it)[0] == 0
    return not it.first.details.get("victim") and not _is_lost_peer(it)


def _is_lost_peer(it: Incident) -> bool:
    return it.first.details.get("what") == "peer_gone"


def _raised(it: Incident) -> str:
    """What an exception says, or an XID means, cut for one line."""
    said = harmless(_meaning(it) if it.first.fault == "xid" else _type_and_message(it))
    return f" ({_cut(said, _LONGEST_IN_VERDICT)})" if said else ""


def _type_and_message(it: Incident) -> str:
    details = it.first.details
    return ": ".join(str(details[name]) for name in ("type", "message") if details.get(name))


def _meaning(it: Incident) -> str:
    code = _code(it)
    return xid(code).meaning if code in XIDS else ""


def _cut(text: str, longest: int) -> str:
    text = text.strip()
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def incident_in_words(it: Incident) -> str:
    """One trouble: what, on whom, what was said, when and where it was told first."""
    told = [_what(it) + _who(it)]
    attempt = f"attempt {it.first.attempt}" if it.first.attempt else ""
    steps = f"step {min(it.steps)}" if it.steps else ""
    told += [part for part in (attempt, steps, _seqs(it), _said(it)) if part]
    if it.first.t is not None and math.isfinite(it.first.t):
        told.append(moment(it.first.t))
    files = f" in {len(it.files)} files" if len(it.files) > 1 else ""
    times = f"{it.times} times{files}, first at " if it.times > 1 else ""
    return f"{', '.join(told)} ({times}{it.first.source})"


def _what(it: Incident) -> str:
    if it.first.fault == "xid":
        return _xid(it.first.details)
    return "lost peer" if _is_lost_peer(it) else it.first.fault


def _who(it: Incident) -> str:
    if it.ranks:  # who reports a desync is not the one that was out of step
        where = "told by" if it.first.fault == "desync" else "on"
        return f" {where} {ranks_in_brief(it.ranks)}"
    hosts = sorted(it.hosts)
    return f" on {', '.join(hosts[:4])}{', …' if len(hosts) > 4 else ''}" if hosts else ""


def _seqs(it: Incident) -> str:
    return ranks_in_brief(it.seqs, "sequence number", longest=60) if it.seqs else ""


def _said(it: Incident) -> str:
    details = it.first.details
    if details.get("victim"):
        return "ended by the launcher because of another"
    said = [str(details[name]) for name in ("op", "why", "text") if details.get(name)]
    if isinstance(absent := details.get("ranks_in_group"), list):
        said.append(f"{ranks_in_brief(absent)} of the group did not come")
    if isinstance(unfinished := details.get("ranks_unfinished"), list):
        said.append(f"{ranks_in_brief(unfinished)} of the group came and did not finish")
    if raised := _type_and_message(it):
        said.append(_cut(raised, _LONGEST_SAID))
    elif it.first.fault == "signal":
        said.append(_signal_name(details.get("number")))
    if "exit_code" in details:
        said.append(f"exit code {details['exit_code']}")
    if details.get("root"):
        said.append("the launcher's root cause")
    if "field" in details:
        said.append(f"{details['field']} is {details.get('value')}")
    return ", ".join(part for part in said if part)


def _signal_name(number: object) -> str:
    return next((it.name for it in signal.Signals if it == number), "")


def _xid(details: Mapping[str, object]) -> str:
    return f"XID {details.get('code')} of GPU {details.get('pci')}"
