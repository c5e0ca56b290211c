"""In which words is a verdict told?"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from train_ledger.answer import CAUSES, Diagnosis, Finding, Group, HangAnswer
from train_ledger.render.harmless import harmless
from train_ledger.render.ranks import ranks_in_brief

__all__ = [
    "duration",
    "group",
    "moment",
    "place",
    "place_in_code",
    "verdict",
    "what_happened",
    "who_waits",
]

_DIFFERENT = {
    "collective_type_mismatch": "operations",
    "size_or_syntax_mismatch": "sizes",
    "collective_dtype_mismatch": "data types",
}
_WITHOUT_CULPRIT = {
    **{
        kind: f"the ranks came with different {things}, and neither side has a majority"
        for kind, things in _DIFFERENT.items()
    },
    "cycle": "the ranks wait for each other in a circle",
    "p2p_unpaired": "a send or receive has no partner that could be named",
    "missing_ranks": "ranks never came, but which ones cannot be said",
    "completion_laggard": "a GPU does not finish what it was given, but which one cannot be said",
    "no_mismatch": "all ranks came and none finishes: the network or a GPU, not the code of one rank",
}


def verdict(answer: HangAnswer | Diagnosis) -> str:
    """The one line that is read first, and perhaps alone.

    >>> verdict(HangAnswer(verdict="hang", culprits=(7, 3)))
    'culprits: ranks 3, 7'
    """
    told = _of_hang(answer) if isinstance(answer, HangAnswer) else _of_diagnosis(answer)
    return harmless(told)


def _of_hang(answer: HangAnswer) -> str:
    if answer.verdict == "no_hang":
        return "no hang: nobody waits for anybody in what was read"
    if answer.verdict == "cannot_tell":
        return f"cannot tell, because {_why_not(answer)}"
    if answer.culprits:
        return _culprits(answer.culprits)
    findings = answer.findings or [Finding(answer.kind or "", (), None, None, None)]
    told = dict.fromkeys(_without_culprit(finding, answer) for finding in findings)
    return f"nobody to blame: {'; '.join(told)}"


_BROKEN_OFF = frozenset({"restarting", "stopped"})
"""Something ended it, so that it is not called well also where nobody found what."""


def _of_diagnosis(answer: Diagnosis) -> str:
    if answer.cause == "none":
        first = "no cause is known" if answer.state in _BROKEN_OFF else "nothing wrong"
        return f"{first}: the run is {answer.state}"
    if answer.cause == "unknown":
        because = answer.not_observed[0] if answer.not_observed else "the evidence does not say why"
        return f"cannot tell, because {because}"
    if answer.ranks:
        on = f" on {', '.join(answer.hosts)}" if answer.hosts else ""
        return f"{_culprits(answer.ranks)}{on}"
    things = [*(f"host {host}" for host in answer.hosts), *(f"GPU {gpu}" for gpu in answer.gpus)]
    if things:
        return f"culprit{'s' if len(things) > 1 else ''}: {', '.join(things)}"
    return f"nobody to blame: {CAUSES.get(answer.cause, answer.cause).removesuffix(', nobody to blame')}"


def _culprits(ranks: Sequence[int]) -> str:
    named = ranks_in_brief(ranks).replace(",", ", ")
    return f"culprit{'s' if len(ranks) > 1 else ''}: {named}"


def _why_not(answer: HangAnswer) -> str:
    if answer.not_observed:
        return answer.not_observed[0]
    if answer.unreadable:
        first = answer.unreadable[0]
        return f"{len(answer.unreadable)} file(s) could not be read, {first.file} among them: {first.why}"
    if answer.missing_dumps:
        return f"there is no dump of {ranks_in_brief(answer.missing_dumps)}"
    return "the dumps do not say"


def what_happened(finding: Finding, answer: HangAnswer | None = None) -> str:
    """Who did what to the others, in one sentence; where it names nobody, `answer` tells of missing dumps."""
    who, op = ranks_in_brief(finding.culprits), finding.op or "the collective"
    others = finding.others_op or "something else"
    several = len(finding.culprits) > 1
    if not finding.culprits:
        return _without_culprit(finding, answer)
    if finding.kind == "missing_ranks" and finding.op is None and finding.group is None:
        return f"{who} fell by {'themselves' if several else 'itself'}: raised, left or died"
    return {
        "collective_type_mismatch": f"{who} came with {op}, the others with {others}",
        "size_or_syntax_mismatch": f"{who} came to {op} with sizes that differ from the others'",
        "collective_dtype_mismatch": f"{who} came to {op} with another data type than the others",
        "cycle": f"{who} wait{'' if several else 's'} in a circle, by another order of calls than the peers",
        "p2p_unpaired": f"{who} {'have' if several else 'has'} not posted the other side of {op}",
        "missing_ranks": f"{who} never came to {op}",
        "completion_laggard": f"{who} came to {op}, but the GPU does not finish what the others' finished",
    }.get(finding.kind, f"{who}: {finding.kind}")


def _without_culprit(finding: Finding, answer: HangAnswer | None) -> str:
    if finding.kind in _DIFFERENT and len(finding.waiting) > 1:
        return f"{_difference(finding)}; {_no_majority(finding, answer)}"
    return _WITHOUT_CULPRIT.get(finding.kind, "the ranks wait, and no rank stands out")


def _difference(finding: Finding) -> str:
    who, things = ranks_in_brief(finding.waiting), _DIFFERENT[finding.kind]
    if finding.kind == "collective_type_mismatch":
        both = f", {finding.op} and {finding.others_op}" if finding.op and finding.others_op else ""
        return f"{who} came with different {things}{both}"
    return f"{who} came to {finding.op or 'the collective'} with different {things}"


def _no_majority(finding: Finding, answer: HangAnswer | None) -> str:
    """Who could have settled it, did they not lack."""
    lacking = {*finding.group.ranks}.difference(finding.waiting) if finding.group else set()
    if not lacking:
        return "neither side has a majority"
    undumped = lacking.intersection(answer.missing_dumps) if answer else set()
    without = (
        f"with no dump of {ranks_in_brief(undumped)}" if undumped else f"without {ranks_in_brief(lacking)}"
    )
    return f"{without} neither side has a majority"


def place(finding: Finding) -> str | None:
    """The operation and its sequence number, as the dumps name them."""
    if finding.op is None and finding.seq is None:
        return None
    number = "" if finding.seq is None else f"sequence number {finding.seq}"
    state = "" if finding.state is None else f"state {finding.state}"
    return ", ".join(part for part in (finding.op or "", number, state) if part)


def place_in_code(finding: Finding) -> str:
    """What the frame of a finding is: where the culprit stands by its stack, else where it last called."""
    return "stands in" if any("stack of rank " in line for line in finding.evidence) else "last call"


def group(group: Group | None) -> str | None:
    """Name, description and members of a process group."""
    if group is None:
        return None
    name = f"{group.desc} ({group.name})" if group.desc and group.name else group.desc or group.name
    told = " – ".join(part for part in (name, ranks_in_brief(group.ranks) if group.ranks else "") if part)
    return f"{told} (members inferred from who recorded in it)" if group.inferred else told


def who_waits(finding: Finding, answer: HangAnswer) -> str | None:
    """The ranks that wait for the culprits, those behind them too."""
    behind = {rank for culprit in finding.culprits for rank in answer.victims_of.get(culprit, ())}
    behind -= {*finding.waiting, *finding.culprits}
    for_whom = _for_whom(finding)
    direct = _wait(finding.waiting, for_whom)
    indirect = _wait(behind, f"{for_whom} through others")
    return "; ".join(part for part in (direct, indirect) if part) or None


_FOR_EACH_OTHER = {*_DIFFERENT, "cycle", "no_mismatch"}


def _for_whom(finding: Finding) -> str:
    if finding.culprits:
        return f" for {ranks_in_brief(finding.culprits)}"
    is_mutual = finding.kind in _FOR_EACH_OTHER and len(finding.waiting) > 1
    return " for each other" if is_mutual else "; for whom cannot be said"


def _wait(ranks: Sequence[int] | set[int], for_whom: str) -> str:
    return f"{ranks_in_brief(ranks)} {'waits' if len(ranks) == 1 else 'wait'}{for_whom}" if ranks else ""


def moment(t: float) -> str:
    """A time of a log, to the second; UTC, since hosts and people sit in different zones."""
    try:
        return datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{t} (unix seconds)"


_MANY_HOURS = 1000


def duration(seconds: float) -> str:
    """A length of time in at most two units.

    >>> duration(4.2), duration(75), duration(3 * 3600 + 25 * 60), duration(1e8)
    ('4.2 s', '1 min 15 s', '3 h 25 min', '1157 days 9 h')
    """
    if not 0 <= seconds < 1e12:
        return f"{seconds} s"
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest_s = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest_s} s"
    hours, minutes = divmod(minutes, 60)
    if hours >= _MANY_HOURS:
        return f"{hours // 24} days {hours % 24} h"
    return f"{hours} h {minutes} min"
