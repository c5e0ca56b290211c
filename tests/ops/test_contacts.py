"""Who is to be told, in each of the ways in which people write it into run.json."""

from __future__ import annotations

import pytest

from train_ledger.ops.contacts import Contact, contacts_of


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ("Ada ", (Contact(None, ("Ada",)),)),
        (["Ada", "", 555], (Contact(None, ("Ada", "555")),)),
        ({"on call": "Ada", "data": ["Grace", "Alan"]}, (("on call", ("Ada",)), ("data", ("Grace", "Alan")))),
        ({"on call": " "}, (Contact("on call", ()),)),
    ],
)
def test_whoever_is_named_is_found(told: object, found: object) -> None:
    assert contacts_of({"contacts": told}) == found


@pytest.mark.parametrize("told", [None, "", [], [[]], {}, 3.5, True])
def test_nobody_is_nobody(told: object) -> None:
    assert contacts_of({"contacts": told}) == ()
