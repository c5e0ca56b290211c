"""Where did the time of a run go, by all that lies in its run directory?"""

from train_ledger.ops.account.of_run import account
from train_ledger.ops.account.answer import answer_of

__all__ = ["account", "answer_of"]
