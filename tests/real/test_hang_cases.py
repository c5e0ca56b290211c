"""The collected cases, made and real, with their right answers; skipped where they are not to be found."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from train_ledger.answer import HangAnswer
from train_ledger.hang import analyse

SHARED = Path(__file__).parents[2].parent / "shared"
CASES = sorted(
    path.parent for part in ("cases/hang", "data/fr") for path in SHARED.glob(f"{part}/*/expected.json")
)

pytestmark = pytest.mark.skipif(not CASES, reason="no ../shared beside the repository")


def _expected(case: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((case / "expected.json").read_text())
    return found


@cache
def _answer(case: Path) -> HangAnswer:
    return analyse([case / "dumps"])


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_the_answer_is_the_expected_one(case: Path) -> None:
    expected, answer = _expected(case), _answer(case)
    assert answer.verdict in expected["verdict"]
    assert answer.kind in expected.get("kind", [answer.kind])
    assert list(answer.culprits) == expected.get("culprits", list(answer.culprits))
    assert answer.seq == expected.get("seq", answer.seq)
    assert answer.confidence == expected.get("confidence", answer.confidence)


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_unreadable_dumps_are_listed_by_file_and_reason(case: Path) -> None:
    answer = _answer(case)
    listed = {int(Path(entry.file).stem.rpartition("_")[2]): entry.why for entry in answer.unreadable}
    assert sorted(listed) == sorted(_expected(case).get("unreadable", []))
    assert all(listed.values())


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_nobody_is_both_culprit_and_victim(case: Path) -> None:
    answer = _answer(case)
    victims = {rank for ranks in answer.victims_of.values() for rank in ranks}
    assert not victims & set(answer.culprits)
    assert set(answer.victims_of) == set(answer.culprits)


def test_the_hostile_pickle_was_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = SHARED / "cases/hang/22_hostile_pickle"
    if not case.exists():
        pytest.skip("no such case")
    monkeypatch.chdir(tmp_path)
    answer = analyse([case / "dumps"])
    assert not list(tmp_path.iterdir())
    assert not (case / "dumps" / "PICKLE_WAS_RUN").exists()
    assert "posix.system" in answer.unreadable[0].why


def test_a_missing_dump_is_not_said_to_have_joined_or_not() -> None:
    case = SHARED / "cases/hang/05_missing_dump_of_failing_rank"
    if not case.exists():
        pytest.skip("no such case")
    answer = _answer(case)
    assert "rank 1 left no dump: whether it joined is not known" in answer.findings[0].evidence
    assert answer.missing_dumps == (1,)
