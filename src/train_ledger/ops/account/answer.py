"""How are the accounts answered to a script?"""

from __future__ import annotations

from typing import Any

from train_ledger.answer import to_json
from train_ledger.ledger.accounts import Accounts

__all__ = ["answer_of"]


def answer_of(accounts: Accounts) -> dict[str, Any]:
    """The accounts as plain JSON values, `schema` first: the fields of the record, and what follows of them.

    `wall_s` is the sum of `seconds`, and `share` the part of each category of it.
    """
    plain = to_json(accounts)
    wall_s = accounts.wall_s
    share = {name: seconds / wall_s if wall_s else None for name, seconds in accounts.seconds.items()}
    return {**plain, "wall_s": wall_s, "share": share}
