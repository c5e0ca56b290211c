"""How are the accounts answered to a script?"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from train_ledger.answer import to_json
from train_ledger.ledger.accounts import Accounts
from train_ledger.ledger.accounts.interruptions import by_cause, table_of

__all__ = ["answer_of"]


def answer_of(accounts: Accounts) -> dict[str, Any]:
    """The accounts as plain JSON values, `schema` first: the fields of the record, and what follows of them.

    `wall_s` is the sum of `seconds`, and `share` the part of each category of it; `causes` are those of the
    interruptions, the most frequent first, with how many and which share.
    """
    plain = to_json(accounts)
    wall_s = accounts.wall_s
    share = {name: seconds / wall_s if wall_s else None for name, seconds in accounts.seconds.items()}
    causes = [asdict(row) for row in table_of(by_cause(accounts.interruptions)).rows]
    return {**plain, "wall_s": wall_s, "share": share, "causes": causes}
