"""Phases become fields of the step, and a reader can tell where a rank stands that hangs in one."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import pytest

from train_ledger.signals.timing import phases as module
from train_ledger.signals.timing.phases import Phases


class Written:
    """The event lines, as they would be written."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, float]] = []
        self.warnings: list[str] = []

    def __call__(
        self, event: str, *, t: float = 0.0, phase: str = "", about: str = "", message: str = ""
    ) -> None:
        if event == "warning":
            self.warnings.append(message)
        else:
            self.lines.append((event, phase, t))

    @property
    def names(self) -> list[tuple[str, str]]:
        return [(event, phase) for event, phase, _ in self.lines]


@pytest.fixture
def written() -> Written:
    return Written()


@pytest.fixture
def phases(written: Written) -> Phases:
    return Phases(written)


def test_the_times_of_a_step_add_up_by_field(phases: Phases) -> None:
    for _ in range(2):
        with phases.begin("forward"):
            time.sleep(0.01)
    with phases.begin("data"):
        pass
    with phases.begin("augmentation"):
        pass
    spent = phases.take()
    assert spent["fwd_s"] >= 0.02
    assert spent.keys() == {"fwd_s", "data_wait_s"}
    assert phases.take() == {}


def test_the_short_phases_of_every_step_are_not_written(phases: Phases, written: Written) -> None:
    for name in ("data", "forward", "backward", "optimizer"):
        with phases.begin(name):
            phases.announce_long()
    assert written.lines == []


@pytest.mark.parametrize(
    "name", ["start_up", "compile", "checkpoint_save", "checkpoint_load", "evaluation", "shutdown"]
)
def test_the_phases_that_raise_a_readers_patience_are_written_at_once(
    phases: Phases, written: Written, name: str
) -> None:
    with phases.begin(name):
        assert written.names == [("phase_start", name)]
    assert written.names == [("phase_start", name), ("phase_end", name)]


def test_a_phase_that_lasts_is_written_with_the_time_it_began(
    phases: Phases, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LONG_S", 0.02)
    began_t = time.time()
    with phases.begin("forward"):
        entered_t = time.time()
        time.sleep(0.05)
        phases.announce_long()
        phases.announce_long()
        assert written.names == [("phase_start", "forward")]
        assert began_t <= written.lines[0][2] <= entered_t
    assert written.names == [("phase_start", "forward"), ("phase_end", "forward")]


def test_a_phase_that_ends_while_it_is_announced_is_not_left_open(phases: Phases, written: Written) -> None:
    phase = phases.begin("forward")
    with phase:
        pass
    phase.announce()  # the background thread had seen it open
    assert written.names == [("phase_start", "forward"), ("phase_end", "forward")]


def test_what_is_open_at_the_end_is_closed_from_the_inside(phases: Phases, written: Written) -> None:
    phases.begin("evaluation").__enter__()
    phases.begin("checkpoint_save").__enter__()
    phases.close_all()
    phases.close_all()
    assert written.names[2:] == [("phase_end", "checkpoint_save"), ("phase_end", "evaluation")]


def test_a_phase_may_be_entered_again(phases: Phases, written: Written) -> None:
    phase = phases.begin("compile")
    for _ in range(2):
        with phase:
            pass
    assert written.names == [("phase_start", "compile"), ("phase_end", "compile")] * 2


def test_an_exception_is_known_by_the_innermost_phase_and_is_not_kept_alive(phases: Phases) -> None:
    error = ValueError()
    with pytest.raises(ValueError), phases.begin("evaluation"), phases.begin("forward"):  # noqa: PT011
        raise error
    assert phases.raised_in(error) == "forward"
    assert phases.raised_in(KeyError()) is None
    kept: list[Any] = [value for value in vars(phases).values() if isinstance(value, BaseException)]
    assert kept == []


def test_an_exception_in_the_place_of_an_earlier_one_is_not_taken_for_it(phases: Phases) -> None:
    places = set()
    for _ in range(5):  # CPython gives the next object the place, and so the id, of the last
        with contextlib.suppress(ValueError), phases.begin("forward"):
            raise ValueError
        error = ValueError()
        places.add(id(error))
        assert phases.raised_in(error) is None
        del error
    assert len(places) < 5


def test_an_exception_that_takes_no_attributes_is_known_too(phases: Phases) -> None:
    class Frozen(Exception):  # noqa: N818
        def __setattr__(self, name: str, value: object) -> None:
            raise AttributeError(name)

    error = Frozen()
    with contextlib.suppress(Frozen), phases.begin("backward"):
        raise error
    assert phases.raised_in(error) == "backward"


def test_phases_that_are_never_left_cost_no_more_and_more(phases: Phases, written: Written) -> None:
    began_s = time.process_time()
    for _ in range(20_000):
        phases.begin("data").__enter__()
    phases.close_all()
    assert time.process_time() - began_s < 10
    assert len(written.warnings) == 1
    assert "with monitor.phase" in written.warnings[0]


def test_a_phase_that_is_forgotten_is_over_for_the_reader(phases: Phases, written: Written) -> None:
    first = phases.begin("evaluation")
    first.__enter__()
    for _ in range(64):
        phases.begin("data").__enter__()
    assert written.names == [("phase_start", "evaluation"), ("phase_end", "evaluation")]
    first.end()
    assert len(written.lines) == 2


def test_a_phase_that_never_began_ends_quietly(phases: Phases, written: Written) -> None:
    phases.begin("forward").end()
    assert written.lines == []


def test_a_phase_that_was_not_what_it_seemed_counts_nowhere(phases: Phases, written: Written) -> None:
    wait = phases.begin("data")
    wait.__enter__()
    time.sleep(0.01)
    wait.drop()
    wait.end()
    assert phases.take() == {}
    assert written.lines == []
    phases.close_all()


def test_a_save_that_may_be_none_is_written_once_it_lasts(
    phases: Phases, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    with phases.begin("checkpoint_save", only_if_long=True):
        phases.announce_long()
    assert written.names == []
    with phases.begin("checkpoint_save", only_if_long=True):
        monkeypatch.setattr("train_ledger.signals.timing.phases._LONG_S", 0.0)
        phases.announce_long()
        assert written.names == [("phase_start", "checkpoint_save")]
    assert written.names == [("phase_start", "checkpoint_save"), ("phase_end", "checkpoint_save")]
