"""A run that has ended: who ended it, how sure that is, and nothing that still runs is suggested."""

from __future__ import annotations

import json
import os
import pickle
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.test_diagnose import gloo_entry
from train_ledger.answer import Diagnosis
from train_ledger.chaos import fleet
from train_ledger.config import Config
from train_ledger.ops import diagnose, examine, read_state
from train_ledger.ops.evidence import gather
from train_ledger.render import Picture
from train_ledger.render.words import verdict
from train_ledger.run_dir import RunDir

T = 1_780_000_000.0
LOST = {"event": "exception", "type": "RuntimeError", "message": "Connection closed by peer [10.0.0.1]:7"}
OWN = {"event": "exception", "type": "ValueError", "message": "bad batch", "phase": "data"}
BUILD = {"event": "exception", "type": "RuntimeError", "message": "Error building extension 'fused_adam'"}
TERM = {"event": "signal", "number": 15}


def a_job(tmp_path, events, *, steps=0, host="n1"):
    """Ranks that start at T, make `steps` steps of one second, and say `events[rank]`: (t, line) pairs."""
    run = RunDir(tmp_path / "run")
    run.signals.mkdir(parents=True)
    start = {"event": "run_start", "world_size": len(events), "host": host, "gpu": 0, "pid": 1 << 22}
    for rank, said in enumerate(events):
        lines = [{"t": T, **start}, {"t": T, "event": "phase_start", "phase": "start_up"}]
        lines += [{"t": T + n, "step": n, "loss": 2.0} for n in range(1, steps + 1)]
        lines += [{"t": T + t, **event} for t, event in said]
        text = "".join(json.dumps({"rank": rank, "attempt": 0, **line}) + "\n" for line in lines)
        run.signals_of(rank).write_text(text)
    return run


def put_dumps(run, pending, *, t, waited_s=1.0):
    """Dumps at T + t; the ranks in `pending` wait in number 7, which the others never issued."""
    folder = run.comm_traces()
    folder.mkdir(exist_ok=True)
    config = {"": {"name": "", "desc": "", "ranks": "[]"}}
    for rank, _ in run.signal_files():
        entries = [gloo_entry(6, "all_reduce", done=True)]
        if rank in pending:
            began_ns = int((T + t - waited_s) * 1e9)
            entries.append({**gloo_entry(7, "all_reduce", done=False), "time_created_ns": began_ns})
        dump = {"version": "2.10", "pg_config": config, "pg_status": {}, "entries": entries}
        file = folder / f"rank_{rank}"
        file.write_bytes(pickle.dumps(dump, protocol=2))
        os.utime(file, (T + t, T + t))


def commands_of(found: Diagnosis) -> list[str]:
    return [it.command for it in (*found.next, *(found.details.next if found.details else ()))]


@pytest.mark.parametrize("others", [[(21, LOST)], [(22, TERM)]], ids=["lost it", "ended by the launcher"])
@pytest.mark.parametrize("dumped", ["all wait for it", "nothing is pending", "no dumps"])
def test_who_alone_raised_in_a_run_that_stopped_is_named_with_confidence(tmp_path, others, dumped):
    run = a_job(tmp_path, [others, [(20.2, OWN)], others, others], steps=20)
    if dumped != "no dumps":
        put_dumps(run, {0, 2, 3} if dumped == "all wait for it" else (), t=21)
    found = diagnose(run, Config(), at=T + 60)
    assert (found.state, found.cause, found.ranks) == ("stopped", "hang.rank_died", (1,))
    assert found.confidence == "high"
    assert not any("a job that runs" in line for line in found.evidence)
    assert not any("stacks" in it.split() or "py-spy" in it for it in commands_of(found))
    assert f"train-ledger read {run.path}" in commands_of(found)


@pytest.mark.parametrize(
    ("own", "others"),
    [
        ({**OWN, "type": "TimeoutError", "message": "gave up after 5 s"}, [(21, LOST)]),
        (OWN, []),
    ],
    ids=["it gave up waiting", "of another one nothing is known"],
)
def test_where_another_story_may_lie_behind_it_less_so(tmp_path, own, others):
    run = a_job(tmp_path, [[(21, LOST)], [(20.2, own)], others, [(21, LOST)]], steps=20)
    found = diagnose(run, Config(), at=T + 4000)
    assert (found.cause, found.ranks, found.confidence) == ("hang.rank_died", (1,), "medium")


@pytest.mark.parametrize(
    "events",
    [
        [[(30, TERM)], [(30, TERM)]],
        [[(30, TERM)], [(30, TERM), (30.4, BUILD)]],
        [[(30, TERM)], [(29.9, BUILD), (30, TERM)]],
        [[(30, TERM)], [(30.3, BUILD)]],
    ],
    ids=["both", "one raised of it", "at once", "its own line is lost"],
)
@pytest.mark.parametrize("pending", [(), (0,)], ids=["nothing pending", "one waits"])
def test_a_job_that_somebody_ends_while_it_starts_accuses_nobody(tmp_path, events, pending):
    run = a_job(tmp_path, events)
    put_dumps(run, pending, t=30.5)
    found = diagnose(run, Config(), at=T + 60)
    assert (found.state, found.cause, found.ranks) == ("stopped", "unknown", ())
    assert any("ended from outside (SIGTERM)" in line for line in found.evidence)
    assert found.impact.wall_s < 31
    assert verdict(found).startswith("cannot tell, because every rank was ended from outside (SIGTERM)")
    assert found.details.findings == ()
    assert found.details.verdict in ("cannot_tell", "no_hang")


def test_what_hangs_says_the_same_of_it_and_draws_no_culprit(tmp_path):
    run = a_job(tmp_path, [[(30, TERM)], [(30, TERM)]])
    put_dumps(run, (0,), t=30.5)
    state = read_state(run, Config(), T + 60)
    examination = gather(run, Config(), state).examination
    assert verdict(examination.answer).startswith("cannot tell, because every rank was ended from outside")
    assert examination.picture == Picture()
    assert examine(run, Config(), at=T + 60).picture == Picture()


def test_whom_the_launcher_ends_because_another_raised_is_a_victim(tmp_path):
    run = a_job(tmp_path, [[(31, TERM)], [(30, OWN)]])
    put_dumps(run, (0,), t=31)
    found = diagnose(run, Config(), at=T + 60)
    assert (found.cause, found.ranks) == ("hang.rank_died", (1,))


def test_a_signal_on_another_host_says_nothing_of_who_was_first(tmp_path):
    """Clocks of two hosts are not compared."""
    run = a_job(tmp_path, [[(30, TERM)], [(30.3, OWN)]])
    path = run.signals_of(1)
    path.write_text(path.read_text().replace('"n1"', '"n2"'))
    assert diagnose(run, Config(), at=T + 60).ranks == (1,)


def test_a_rank_that_is_asked_for_a_dump_has_not_died_of_it(tmp_path):
    made = fleet.write(tmp_path / "run", fault="process_gone", culprit=5, hosts=2, ranks_per_host=4)
    asked = {"t": made.t, "rank": 2, "attempt": 0, "event": "signal", "number": 10}
    with made.run_dir.signals_of(2).open("a") as file:
        file.write(json.dumps(asked) + "\n")
    assert diagnose(made.run_dir, Config(), at=made.t + 5).ranks == ()


_SAYS_SO = {
    "a collective that hangs": ("hang.rank_missing", "hang.mismatch", "hang.fabric", "hang.host"),
    "the fabric": ("hang.fabric",),
    "mismatch of operation, size or type": ("hang.mismatch",),
    "hang.rank_died": ("hang.rank_died",),
}
_ENDS = st.sampled_from(
    [[], [(30, OWN)], [(30, LOST)], [(30, TERM)], [(30, TERM), (30.1, BUILD)], [(30, BUILD), (40, TERM)]]
)


@settings(max_examples=30, deadline=None)
@given(
    events=st.lists(_ENDS, min_size=2, max_size=4),
    pending=st.sets(st.integers(0, 3)),
    steps=st.sampled_from([0, 20]),
    later_s=st.sampled_from([5, 4000]),
    seen=st.booleans(),
)
def test_nothing_is_ruled_out_and_named_at_once(tmp_path_factory, events, pending, steps, later_s, seen):
    host = socket.gethostname() if seen else "n1"
    run = a_job(tmp_path_factory.mktemp("job"), events, steps=steps, host=host)
    put_dumps(run, pending, t=31)
    at = T + 40 + later_s
    found = diagnose(run, Config(), at=at, state=read_state(run, Config(), at) if seen else None)
    out = [*found.ruled_out, *(found.details.ruled_out if found.details else ())]
    assert not [it for it in out if found.cause in _SAYS_SO.get(it.cause, ())]
    if found.details and found.details.findings:
        assert "a collective that hangs" not in [it.cause for it in out]
    victims = {rank for rank, said in enumerate(events) if said and said[0][1] in (LOST, TERM)}
    assert victims.isdisjoint(found.ranks) or found.cause == "hang.rank_missing"
