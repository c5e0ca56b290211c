"""What did each incident of a run cost?"""

from __future__ import annotations

from collections.abc import Mapping

from train_ledger.answer import Impact
from train_ledger.config import Config
from train_ledger.ledger.accounts import Accounts
from train_ledger.ops.postmortem.incident import all_incidents
from train_ledger.ops.postmortem.loss import loss
from train_ledger.ops.postmortem.split import split
from train_ledger.run_dir import RunDir

__all__ = ["losses"]


def losses(run_dir: RunDir, config: Config, accounts: Accounts) -> Mapping[str, Impact]:
    """Of each incident of which it is known: from the last step until the step once reached was passed.

    Raises RunDirError where run.json cannot be used, JournalError where the journal cannot be read.
    """
    run = run_dir.read_run()
    told = (
        (each.id, loss(each, split(each, (), accounts), accounts, run, config).impact)
        for each in all_incidents(run_dir)
    )
    return {incident: impact for incident, impact in told if impact is not None}
