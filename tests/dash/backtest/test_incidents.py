"""What somebody wrote down of what happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from train_ledger.dash.backtest import IncidentsError, incidents_in


def read(tmp_path: Path, *lines: str) -> dict[str, list[tuple[float, str, float]]]:
    path = tmp_path / "incidents.jsonl"
    path.write_text("\n".join(lines))
    return {run: [(it.t, it.kind, it.until_t) for it in its] for run, its in incidents_in(path).items()}


def test_each_line_is_an_incident_of_a_run(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        '{"run": "r42", "t": 2000, "kind": "hang", "until": 2600}',
        "",
        '{"run": "r42", "t": "1970-01-01T00:16:40+00:00"}',
        '{"run": "r43", "t": 5.5}',
    )
    assert found == {
        "r42": [(1000.0, "incident", 4600.0), (2000.0, "hang", 2600.0)],
        "r43": [(5.5, "incident", 3605.5)],
    }


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[]", "wanted is one JSON object a line"),
        ("{", "Expecting property name"),
        ('{"t": 1}', '"run" is missing'),
        ('{"run": "r42"}', '"t" must be unix seconds, or ISO 8601 with a zone'),
        ('{"run": "r42", "t": true}', '"t" must be unix seconds'),
        ('{"run": "r42", "t": "NaN"}', '"t" must be unix seconds'),
        ('{"run": "r42", "t": "2026-11-30T03:12:00"}', "with a zone"),
        ('{"run": "r42", "t": 9, "until": 8}', '"until" lies before "t"'),
        ('{"run": "r42", "t": 9, "untill": 10}', "unknown key untill; known are run, t, kind, until"),
        ('{"run": "r42", "t": 9, "kind": 3}', '"kind" must be a word'),
    ],
)
def test_a_line_that_is_none_is_named(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(IncidentsError) as caught:
        read(tmp_path, '{"run": "r42", "t": 1}', line)
    assert str(caught.value).startswith(f"{tmp_path}/incidents.jsonl:2: ")
    assert said in str(caught.value)
