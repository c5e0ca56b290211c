"""What do journal and notes know of a run's recoveries that its signals do not say?

Why the run was interrupted, by the verdict; and when somebody decided what to do, by their note or by the
keeper's own hook.
"""

from __future__ import annotations

from dataclasses import replace

from train_ledger.ledger.accounts import Accounts, Interruption, Recovery
from train_ledger.ledger.notes import read_notes
from train_ledger.ops.postmortem.incident import Incident, all_incidents
from train_ledger.ops.postmortem.split import Split, split
from train_ledger.run_dir import RunDir

__all__ = ["with_journal"]

_NOTHING = ("none", "unknown")


def with_journal(accounts: Accounts, run_dir: RunDir) -> Accounts:
    """The accounts with causes and parts of recoveries filled in where they are not known.

    Raises JournalError where the journal cannot be read.
    """
    notes = read_notes(run_dir).notes
    known: dict[Interruption, Recovery] = {}
    for incident in all_incidents(run_dir) if accounts.recoveries else ():
        found = split(incident, notes, accounts)
        if len(found.recoveries) == 1:  # of several it is not known whose the incident's marks are
            known[found.recoveries[0].interruption] = _filled(found.recoveries[0], found, incident)
    recoveries = tuple(known.get(it.interruption, it) for it in accounts.recoveries)
    causes = {old: new.interruption for old, new in known.items()}
    stops = tuple(causes.get(it, it) for it in accounts.interruptions)
    return replace(accounts, recoveries=recoveries, interruptions=stops)


def _filled(recovery: Recovery, found: Split, incident: Incident) -> Recovery:
    told = {part: length_s for part, length_s in found.parts_s.items() if length_s is not None}
    verdict = incident.verdict
    stop = recovery.interruption
    if verdict is not None and verdict.cause not in _NOTHING and stop.cause == "unknown":
        stop = replace(stop, cause=verdict.cause)
    return replace(recovery, interruption=stop, parts_s={**recovery.parts_s, **told})
