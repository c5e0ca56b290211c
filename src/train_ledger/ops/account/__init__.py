"""Where did the time of a run go, by all that lies in its run directory?"""

from train_ledger.ops.account.answer import answer_of
from train_ledger.ops.account.of_run import account

__all__ = ["account", "answer_of"]
