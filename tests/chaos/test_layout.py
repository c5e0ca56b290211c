"""A layout is written as trainers write it, and what cannot be had is said in one line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.chaos.layout import GROUPS, Layout, LayoutError, layout_for, read_layout


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("dp=2,tp=2,pp=2", Layout(2, 2, 2)),
        ("pp=4", Layout(1, 1, 4)),
        (" tp = 4 , dp=3 ", Layout(3, 4, 1)),
    ],
)
def test_what_is_written_is_read(text, layout):
    assert read_layout(text) == layout


@pytest.mark.parametrize(
    "text", ["", "dp", "dp=0", "dp=-1", "dp=2,dp=2", "cp=2", "dp=65", "dp=x", "tp=3", "tp=8"]
)
def test_what_is_no_layout_is_refused(text):
    with pytest.raises(LayoutError, match="layout"):
        read_layout(text)


@given(st.builds(Layout, st.integers(1, 64), st.sampled_from([1, 2, 4]), st.integers(1, 64)))
def test_a_layout_reads_back_as_it_is_written(layout):
    assert read_layout(str(layout)) == layout


@given(st.integers(2, 64), st.sampled_from(GROUPS))
def test_a_chosen_layout_has_the_group_and_all_ranks(ranks, group):
    try:
        layout = layout_for(ranks, group)
    except LayoutError:
        assert ranks % 2
    else:
        assert layout.ranks == ranks
        assert layout.size_of(group) >= 2
