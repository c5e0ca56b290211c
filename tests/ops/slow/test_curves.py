"""How a run became slow, as a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from train_ledger import config
from train_ledger.answer import Diagnosis, SlowAnswer
from train_ledger.chaos import fleet
from train_ledger.chaos.fleet import Fleet
from train_ledger.ops.slow import look_at, picture_at
from train_ledger.ops.slow.curves import curves_at


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    folder = tmp_path_factory.mktemp("slow") / "r42"
    return fleet.write(folder, fault="slow_rank", culprit=5, hosts=2, ranks_per_host=4, steps=200)


def _answer(made: Fleet) -> SlowAnswer:
    details = look_at(made.run_dir, config.load(made.run_dir), at=made.t).details
    assert isinstance(details, SlowAnswer)
    return details


def test_step_times_and_own_work_beside_the_peers_with_the_change_marked(made: Fleet) -> None:
    steps, work = curves_at(made.run_dir, config.load(made.run_dir), _answer(made), made.t)
    assert (steps.mark, steps.mark_text) == (101, "slower since step 101")
    culprit, peers = work.lines
    assert (culprit.name, culprit.look, peers.name) == ("rank 5", "culprit", "median of ranks 0-4,6-7")
    after = [place > 101 for place in work.places]
    assert np.mean(np.array(culprit.values)[after]) > 1.3 * np.mean(np.array(peers.values)[after])
    assert work.band is not None
    assert max(np.array(work.band.largest)[after]) < min(np.array(culprit.values)[after])


def test_where_nobody_drags_all_are_shown_beside_each_other(made: Fleet) -> None:
    answer = SlowAnswer("not_slow", "none")
    steps, work = curves_at(made.run_dir, config.load(made.run_dir), answer, made.t)
    assert steps.mark is None
    assert [line.name for line in work.lines] == ["median of ranks 0-7"]


def test_a_run_without_steps_has_no_picture(tmp_path: Path) -> None:
    from train_ledger.run_dir import RunDir

    (tmp_path / "signals").mkdir()
    run_dir = RunDir.existing(tmp_path)
    assert curves_at(run_dir, config.load(run_dir), SlowAnswer("cannot_tell", "unknown")) == ()


def test_a_change_that_lies_far_back_is_shown_with_the_steps_around_it(tmp_path: Path) -> None:
    made = fleet.write(
        tmp_path / "r42", fault="slow_all", hosts=1, ranks_per_host=2, steps=1200, fault_step=300
    )
    answer = SlowAnswer("slow", "slow.data", since_step=301)
    (steps, *_) = curves_at(made.run_dir, config.load(made.run_dir), answer, made.t)
    assert (steps.places[0], steps.places[-1]) == (2, 401)
    assert steps.mark == 301


def test_beside_an_answer_of_another_kind_nothing_is_drawn(made: Fleet) -> None:
    settings = config.load(made.run_dir)
    assert picture_at(made.run_dir, settings, Diagnosis("stalled", "hang.host"), made.t) is None
    found = look_at(made.run_dir, settings, at=made.t)
    picture = picture_at(made.run_dir, settings, found, made.t)
    assert picture is not None
    assert len(picture.curves) == 2
