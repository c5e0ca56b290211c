import json
import os
import pickle

import pytest

from train_ledger.chaos import fleet
from train_ledger.config import Config
from train_ledger.ops import diagnose


def at_its_end(made):
    return diagnose(made.run_dir, Config(), at=made.t + 5)


def gloo_entry(seq, op, *, done):
    return {
        "record_id": seq,
        "pg_id": 0,
        "process_group": ("0", "default_pg"),
        "collective_seq_id": seq,
        "p2p_seq_id": 0,
        "op_id": seq,
        "profiling_name": f"gloo:{op}",
        "time_created_ns": 0,
        "input_sizes": [[2]],
        "input_dtypes": ["Float"],
        "output_sizes": [[2]],
        "output_dtypes": ["Float"],
        "state": "scheduled",
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None,
        "retired": done,
        "timeout_ms": 1_800_000,
        "is_p2p": False,
        "frames": [{"name": "train", "filename": "train.py", "line": 88}],
    }


def put_dumps(made, behind, *, t=None):
    """Dumps of all ranks: the ranks in `behind` never issued number 7, all others wait in it."""
    folder = made.run_dir.comm_traces()
    folder.mkdir(exist_ok=True)
    config = {"": {"name": "", "desc": "", "ranks": "[]"}}
    for rank in range(made.world_size):
        entries = [gloo_entry(6, "all_reduce", done=True)]
        if rank not in behind:
            entries.append(gloo_entry(7, "all_reduce", done=False))
        dump = {"version": "2.10", "pg_config": config, "pg_status": {}, "entries": entries}
        file = folder / f"rank_{rank}"
        file.write_bytes(pickle.dumps(dump, protocol=2))
        written_t = made.t if t is None else t
        os.utime(file, (written_t, written_t))


@pytest.mark.parametrize(
    ("fault", "cause", "ranks"),
    [
        (None, "none", ()),
        ("hang", "hang.rank_missing", (5,)),
        ("init_hang", "hang.init", ()),
        ("process_gone", "unknown", ()),
        ("exception", "hang.rank_died", (5,)),
        ("nan", "numeric.nan", ()),
        ("restart", "none", ()),
        ("restart_loop", "restart_loop", ()),
        ("checkpoint_failed", "checkpoint_failing", ()),
        ("slow_rank", "none", ()),
    ],
)
def test_from_signals_alone_the_cause_is_found_and_no_innocent_is_named(tmp_path, fault, cause, ranks):
    made = fleet.write(
        tmp_path / "run", fault=fault, culprit=5, hosts=2, ranks_per_host=4, checkpoint_every=20
    )
    found = at_its_end(made)
    assert (found.cause, found.ranks) == (cause, ranks)


def test_dumps_name_the_rank_that_did_not_come_and_its_host(tmp_path):
    made = fleet.write(tmp_path / "run", fault="process_gone", culprit=5, hosts=2, ranks_per_host=4)
    put_dumps(made, behind={5})
    found = at_its_end(made)
    assert (found.cause, found.ranks, found.hosts) == ("hang.rank_missing", (5,), ("node001",))
    assert found.details.kind == "missing_ranks"
    assert found.details.victims_of == {5: (0, 1, 2, 3, 4, 6, 7)}


def test_a_rank_that_raised_and_did_not_come_died(tmp_path):
    made = fleet.write(tmp_path / "run", fault="exception", culprit=5, hosts=2, ranks_per_host=4)
    put_dumps(made, behind={5})
    found = at_its_end(made)
    assert (found.cause, found.ranks) == ("hang.rank_died", (5,))
    assert any("illegal memory access" in line for line in found.evidence)


def test_where_all_came_and_nobody_finishes_nobody_is_accused(tmp_path):
    made = fleet.write(tmp_path / "run", fault="process_gone", culprit=5, hosts=2, ranks_per_host=4)
    put_dumps(made, behind=set())
    found = at_its_end(made)
    assert (found.cause, found.ranks, found.hosts) == ("hang.fabric", (), ())


def test_dumps_of_an_earlier_hang_are_stale_and_name_nobody(tmp_path):
    made = fleet.write(tmp_path / "run", fault="process_gone", culprit=5, hosts=2, ranks_per_host=4)
    put_dumps(made, behind={2}, t=made.fault_t - 600)
    found = at_its_end(made)
    assert (found.cause, found.ranks) == ("unknown", ())
    assert len(found.details.stale) == 8


def test_what_was_dumped_later_was_not_known_then(tmp_path):
    made = fleet.write(tmp_path / "run", fault="process_gone", culprit=5, hosts=2, ranks_per_host=4)
    put_dumps(made, behind={5}, t=made.t + 60)
    assert diagnose(made.run_dir, Config(), at=made.t + 5).ranks == ()
    assert diagnose(made.run_dir, Config(), at=made.t + 90).ranks == (5,)


def test_before_the_fault_nothing_is_wrong(tmp_path):
    made = fleet.write(tmp_path / "run", fault="hang", culprit=5, hosts=2, ranks_per_host=4)
    assert diagnose(made.run_dir, Config(), at=made.fault_t).cause == "none"


def test_impact_is_every_gpu_that_stood_still_at_the_run_s_own_price(tmp_path):
    made = fleet.write(tmp_path / "run", fault="hang", culprit=5, hosts=2, ranks_per_host=4)
    impact = at_its_end(made).impact
    assert impact.gpu_hours == pytest.approx(impact.wall_s * 8 / 3600)
    assert impact.cost == pytest.approx(impact.gpu_hours * 2.5)


def test_an_empty_folder_is_not_called_healthy(tmp_path):
    (tmp_path / "run").mkdir()
    made = fleet.RunDir(tmp_path / "run")
    found = diagnose(made, Config())
    assert (found.cause, found.ranks, found.impact) == ("unknown", (), None)
    assert any("no rank has written a line" in line for line in found.not_observed)


def test_the_next_commands_can_be_pasted_whatever_the_folder_is_called(tmp_path):
    made = fleet.write(tmp_path / "my run; rm -rf x", fault="hang", culprit=5, hosts=2, ranks_per_host=4)
    commands = [step.command for step in at_its_end(made).next]
    assert any(command.startswith("ssh node001 py-spy dump --pid ") for command in commands)
    hang = next(command for command in commands if command.startswith("train-ledger hang"))
    assert "'" in hang
    assert "run; rm" not in hang.replace(f"'{made.run_dir.path}", "")


def end_all(made, **event):
    for rank, path in made.run_dir.signal_files():
        line = {"t": made.t, "rank": rank, "attempt": 0, "step": 50, **event}
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"event": "signal", "number": 15}, "SIGTERM"),
        ({"event": "exception", "type": "KeyboardInterrupt", "message": ""}, "Ctrl-C"),
    ],
)
def test_a_healthy_job_that_somebody_ended_accuses_nobody(tmp_path, event, said):
    made = fleet.write(
        tmp_path / "run", fault="slow_rank", hosts=2, ranks_per_host=4, fault_step=50, steps=51
    )
    end_all(made, **event)
    put_dumps(made, behind={2})
    found = diagnose(made.run_dir, Config(), at=made.t + 400)
    assert (found.state, found.cause, found.ranks) == ("stopped", "unknown", ())
    assert any(f"ended from outside ({said})" in line for line in found.evidence)
    assert found.impact.wall_s < 60
    assert not any("py-spy" in step.command for step in found.next)


def test_a_job_that_was_ended_while_it_hung_keeps_the_rank_that_had_not_come(tmp_path):
    made = fleet.write(tmp_path / "run", fault="process_gone", culprit=5, hosts=2, ranks_per_host=4)
    end_all(made, event="signal", number=15)
    put_dumps(made, behind={5})
    found = diagnose(made.run_dir, Config(), at=made.t + 5)
    assert (found.cause, found.ranks) == ("hang.rank_missing", (5,))


def test_dumps_of_ranks_on_their_way_out_do_not_make_a_fault_of_the_fabric(tmp_path):
    made = fleet.write(tmp_path / "run", fault="process_gone", culprit=5, hosts=2, ranks_per_host=4)
    end_all(made, event="signal", number=15)
    put_dumps(made, behind=set())
    found = diagnose(made.run_dir, Config(), at=made.t + 5)
    assert (found.cause, found.ranks) == ("unknown", ())


def test_an_open_checkpoint_is_named_as_the_reason_for_the_limit(tmp_path):
    made = fleet.write(tmp_path / "run", fault="slow_rank", hosts=1, ranks_per_host=4)
    line = {"t": made.t, "rank": 0, "attempt": 0, "event": "phase_start", "phase": "checkpoint_save"}
    with made.run_dir.signals_of(0).open("a") as file:
        file.write(json.dumps(line) + "\n")
    found = diagnose(made.run_dir, Config(), at=made.t + 100)
    assert found.cause == "none"
    assert found.evidence[0].endswith("(limit 600 s, since a checkpoint is being saved by rank 0)")
