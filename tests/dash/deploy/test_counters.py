"""What dcgm-exporter is asked for."""

from __future__ import annotations

import csv
import re

from train_ledger.dash.deploy import COUNTERS, counters_csv
from train_ledger.dash.rules import RECORDINGS, RULES
from train_ledger.sources.hardware import gpu_fields

ROWS = [
    [cell.strip() for cell in row]
    for row in csv.reader(counters_csv().splitlines())
    if row and not row[0].startswith("#")
]
FIELDS = {row[0] for row in ROWS}


def test_each_row_has_a_field_a_type_and_a_help_without_commas() -> None:
    for row in ROWS:
        assert len(row) == 3, row
        assert re.fullmatch(r"DCGM_(FI|EXP)_[A-Z0-9_]+", row[0])
        assert row[1] in ("gauge", "counter")
        assert '"' not in row[2]


def test_no_field_is_asked_for_twice() -> None:
    assert len(FIELDS) == len(ROWS)


def test_there_are_the_four_groups_of_the_seed_article() -> None:
    assert list(dict.fromkeys(counter.group for counter in COUNTERS)) == [
        "state",
        "activity and traffic",
        "errors",
        "memory",
    ]


def test_every_field_that_a_rule_reads_is_asked_for() -> None:
    asked = " ".join([rule.promql for rule in RULES] + [it.promql for it in RECORDINGS])
    alternatives = {counter.field for counter in COUNTERS if counter.since} | set(gpu_fields.RENAMED)
    assert set(re.findall(r"\bDCGM_[A-Z0-9_]*[A-Z0-9]\b", asked)) - FIELDS - alternatives == set()


def test_what_the_embedded_judge_asks_dcgm_for_is_there() -> None:
    by_hand = {counter.field for counter in COUNTERS if counter.since}
    assert set(gpu_fields.WANTED) - FIELDS - by_hand == set()


def test_what_older_releases_do_not_know_is_a_comment_that_says_so() -> None:
    text = counters_csv()
    for counter in COUNTERS:
        if counter.since:
            assert f"# {counter.field}, " in text
            assert f"# {counter.since}:\n" in text
