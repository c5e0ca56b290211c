import json
import os
import pickle
import shutil
import socket
from dataclasses import replace

import pytest

from train_ledger.chaos import fleet
from train_ledger.config import Config
from train_ledger.ops import diagnose, read_state
from train_ledger.render import lost


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
        ("slow_rank", "slow.straggler.software", (5,)),
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


def test_a_job_on_cpus_has_no_gpu_hours(tmp_path):
    made = fleet.write(tmp_path / "run", fault="hang", culprit=5, hosts=2, ranks_per_host=4)
    run = json.loads(made.run_dir.run_json.read_text())
    made.run_dir.run_json.write_text(json.dumps({**run, "device": "cpu"}))
    found = at_its_end(made)
    assert found.impact.wall_s > 0
    assert (found.impact.gpu_hours, found.impact.cost) == (None, None)
    assert lost.impact(found.impact, "USD").endswith(" of wall time")


def test_an_empty_folder_is_not_called_healthy(tmp_path):
    (tmp_path / "run").mkdir()
    made = fleet.RunDir(tmp_path / "run")
    found = diagnose(made, Config())
    assert (found.cause, found.ranks, found.impact) == ("unknown", (), None)
    assert any("no rank has written a line" in line for line in found.not_observed)


def test_the_folder_above_a_run_or_in_it_leads_to_the_run(tmp_path):
    made = fleet.write(tmp_path / "r42", fault="hang", culprit=5, hosts=2, ranks_per_host=4)
    put_dumps(made, behind={5})
    for folder in (tmp_path, made.run_dir.comm_traces(), made.run_dir.path / "signals"):
        found = diagnose(fleet.RunDir(folder), Config())
        commands = [step.command for step in found.next]
        assert commands[0] == f"train-ledger diagnose {made.run_dir.path}"
        assert (f"train-ledger hang {folder}" in commands) == (folder.name == "comm_traces")


def test_the_next_commands_can_be_pasted_whatever_the_folder_is_called(tmp_path):
    made = fleet.write(tmp_path / "my run; rm -rf x", fault="hang", culprit=5, hosts=2, ranks_per_host=4)
    commands = [step.command for step in at_its_end(made).next]
    assert any(command.startswith("ssh node001 py-spy dump --pid ") for command in commands)
    hang = next(command for command in commands if command.startswith("train-ledger hang --run "))
    assert "'" in hang
    assert "run; rm" not in hang.replace(f"'{made.run_dir.path}", "")
    made.run_dir.comm_traces(1).mkdir(parents=True)  # a later attempt: what is meant is named
    hang = next(it.command for it in at_its_end(made).next if it.command.startswith("train-ledger hang"))
    assert hang.startswith(f"train-ledger hang '{made.run_dir.comm_traces()}' --stacks ")


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
    assert found.cause == "slow.straggler.software"
    assert found.evidence[-1].endswith("(limit 600 s, since a checkpoint is being saved by rank 0)")


def with_losses(made, first_bad, *, last_step):
    """Every rank goes on to its `last_step`, its loss not finite from `first_bad[rank]` on (None: never)."""
    for rank, path in made.run_dir.signal_files():
        with path.open("a") as file:
            for step in range(51, last_step[rank] + 1):
                bad = first_bad[rank] is not None and step >= first_bad[rank]
                loss = "NaN" if bad else 2.0
                line = {"t": made.t + step - 50, "step": step, "rank": rank, "loss": loss, "step_time_s": 1.0}
                file.write(json.dumps(line) + "\n")


@pytest.mark.parametrize(
    ("first_bad", "last_step", "named"),
    [
        ([60, 60, 60, 60], [70, 70, 70, 70], ()),
        ([60, 60, 60, 60], [70, 69, 70, 71], ()),
        ([60, None, None, None], [70, 70, 70, 70], (0,)),
        ([60, 63, 63, 63], [70, 70, 70, 70], (0,)),
        ([60, None, None, None], [70, 59, 70, 70], ()),
    ],
    ids=["all at once", "some are lines behind", "one alone", "one first", "one not heard of that step"],
)
def test_a_nan_names_a_rank_only_where_the_others_were_finite_then(tmp_path, first_bad, last_step, named):
    made = fleet.write(
        tmp_path / "run", fault="slow_rank", hosts=1, ranks_per_host=4, fault_step=50, steps=51
    )
    with_losses(made, first_bad, last_step=last_step)
    found = diagnose(made.run_dir, Config(), at=made.t + 25)
    assert (found.cause, found.ranks, found.since_step) == ("numeric.nan", named, 60)


def test_whether_a_loss_is_still_not_finite_is_said(tmp_path):
    """The run of `fleet` had three such steps; here, in another, they go on to the end."""
    over = fleet.write(tmp_path / "over", fault="nan", hosts=1, ranks_per_host=4)
    found = diagnose(over.run_dir, Config(), at=over.t + 1)
    assert "the last loss that was not finite is that of step 53; 50 steps followed" in found.evidence
    lasts = fleet.write(
        tmp_path / "run", fault="slow_rank", hosts=1, ranks_per_host=4, fault_step=50, steps=51
    )
    with_losses(lasts, [60] * 4, last_step=[70] * 4)
    found = diagnose(lasts.run_dir, Config(), at=lasts.t + 25)
    assert "the last loss that was not finite is that of step 70, the newest step" in found.evidence


def a_state(run_dir, made, **changes):
    state = read_state(run_dir, Config(), made.t + 5)
    ranks = {rank: replace(it, **changes.get(f"rank_{rank}", {})) for rank, it in state.ranks.items()}
    return replace(state, ranks=ranks)


def test_dumps_written_at_the_launcher_s_sigterm_do_not_accuse_those_it_ended(tmp_path):
    """Rank 3 was killed without a word; the launcher then ended 0 to 2, two of them on their way there."""
    made = fleet.write(tmp_path / "run", fault="process_gone", culprit=3, hosts=1, ranks_per_host=4)
    for rank in (0, 1, 2):
        line = {
            "t": made.fault_t + 1,
            "rank": rank,
            "attempt": 0,
            "step": 50,
            "event": "signal",
            "number": 15,
        }
        with made.run_dir.signals_of(rank).open("a") as file:
            file.write(json.dumps(line) + "\n")
    put_dumps(made, behind={1, 2})
    made.run_dir.comm_trace_of(3).unlink()
    gone = {f"rank_{rank}": {"gone_t": made.fault_t + 2} for rank in range(4)}
    found = diagnose(made.run_dir, Config(), state=a_state(made.run_dir, made, **gone))
    assert (found.cause, found.ranks) == ("hang.rank_died", (3,))


def test_a_rank_that_gloo_aborted_is_not_the_one_that_fell_first(tmp_path):
    made = fleet.write(tmp_path / "run", fault="process_gone", culprit=3, hosts=1, ranks_per_host=4)
    made.run_dir.stacks().mkdir()
    (made.run_dir.stacks() / "rank_3.txt").write_text("Fatal Python error: Aborted\n\nThread 0x1:\n")
    gone = {"rank_3": {"gone_t": made.fault_t + 2}}
    found = diagnose(made.run_dir, Config(), state=a_state(made.run_dir, made, **gone))
    assert found.ranks == ()


def test_a_rank_that_left_while_the_others_wait_for_it_is_the_one(tmp_path):
    made = fleet.write(tmp_path / "run", fault="process_gone", culprit=3, hosts=1, ranks_per_host=4)
    with made.run_dir.signals_of(3).open("a") as file:
        file.write(json.dumps({"t": made.fault_t, "rank": 3, "attempt": 0, "event": "run_end"}) + "\n")
    found = diagnose(made.run_dir, Config(), at=made.t + 5)
    assert (found.cause, found.ranks) == ("hang.rank_died", (3,))


def test_from_files_alone_nobody_says_that_no_process_was_seen_dead(tmp_path):
    made = fleet.write(tmp_path / "run", fault="process_gone", culprit=3, hosts=1, ranks_per_host=4)
    found = diagnose(made.run_dir, Config(), at=made.t + 5)
    assert "hang.rank_died" not in [it.cause for it in found.ruled_out]
    assert any(line.startswith("processes: ") for line in found.not_observed)


@pytest.mark.parametrize(
    ("changes", "is_ruled_out", "not_observed"),
    [
        ({}, True, None),
        (
            {"host": "node077"},
            False,
            "processes of rank 2: of other hosts, or without a process of their own",
        ),
        ({"pid": None}, False, "processes of rank 2: of other hosts, or without a process of their own"),
    ],
    ids=["all are here", "one is elsewhere", "one without a number"],
)
def test_that_none_died_is_ruled_out_only_where_all_were_looked_at(
    tmp_path, changes, is_ruled_out, not_observed
):
    made = fleet.write(tmp_path / "run", fault="process_gone", culprit=3, hosts=1, ranks_per_host=4)
    here = {"host": socket.gethostname(), "pid": os.getpid()}
    seen = {f"rank_{rank}": {**here, **(changes if rank == 2 else {})} for rank in range(4)}
    kept = diagnose(made.run_dir, Config(), state=a_state(made.run_dir, made, **seen))
    assert ("hang.rank_died" in [it.cause for it in kept.ruled_out]) == is_ruled_out
    said = [line for line in kept.not_observed if line.startswith("processes")]
    assert [line.startswith(not_observed or "") for line in said] == ([] if is_ruled_out else [True])


def test_numbers_that_are_no_processes_here_are_not_looked_at(tmp_path):
    """The ranks count their processes in a container of their own."""
    made = fleet.write(tmp_path / "run", fault="process_gone", culprit=3, hosts=1, ranks_per_host=4)
    here = {"host": socket.gethostname(), "pid": 1 << 22}
    seen = {f"rank_{rank}": here for rank in range(4)}
    kept = diagnose(made.run_dir, Config(), state=a_state(made.run_dir, made, **seen))
    assert "hang.rank_died" not in [it.cause for it in kept.ruled_out]
    assert any(line.startswith("processes: ") for line in kept.not_observed)


def test_ranks_that_lost_the_connection_to_those_that_were_ended_do_not_make_a_fault_of_the_fabric(tmp_path):
    made = fleet.write(
        tmp_path / "run", fault="slow_rank", hosts=1, ranks_per_host=4, fault_step=50, steps=51
    )
    lost = {"event": "exception", "type": "RuntimeError", "message": "Connection closed by peer"}
    for rank, path in made.run_dir.signal_files():
        end = {"event": "signal", "number": 15} if rank < 2 else lost
        with path.open("a") as file:
            file.write(json.dumps({"t": made.t, "rank": rank, "attempt": 0, "step": 50, **end}) + "\n")
    put_dumps(made, behind=set())
    found = diagnose(made.run_dir, Config(), at=made.t + 400)
    assert (found.cause, found.ranks) == ("unknown", ())


@pytest.mark.parametrize("broken", ["empty", "fifo", "dangling"])
def test_a_dump_that_is_there_and_cannot_be_read_accuses_nobody_of_not_coming(tmp_path, broken):
    made = fleet.write(tmp_path / "run", fault="process_gone", culprit=5, hosts=2, ranks_per_host=4)
    put_dumps(made, behind={5})
    dump = made.run_dir.comm_trace_of(5)
    dump.unlink()
    if broken == "fifo":
        os.mkfifo(dump)
    elif broken == "dangling":
        dump.symlink_to(tmp_path / "nowhere")
    else:
        dump.touch()
    os.utime(dump, (made.t, made.t), follow_symlinks=False)
    found = diagnose(made.run_dir, Config(), at=made.t + 5)
    assert found.ranks == ()
    assert any(str(dump) in it.file for it in found.details.unreadable)


def put_stacks(made, frames_of):
    """py-spy's text of every rank, in the file's time of the run's end."""
    folder = made.run_dir.stacks()
    folder.mkdir(exist_ok=True)
    for rank in range(made.world_size):
        text = "".join(f"    {name} ({file}:{line})\n" for name, file, line in frames_of(rank))
        path = folder / f"rank_{rank}.txt"
        path.write_text(
            f'Process {rank}: python train.py\nPython v3.12.3\n\nThread {rank} (idle): "MainThread"\n{text}'
        )
        os.utime(path, (made.t, made.t))


def test_where_all_stand_in_set_up_what_usually_lies_behind_it_is_said(tmp_path):
    made = fleet.write(tmp_path / "run", fault="init_hang", culprit=5, hosts=2, ranks_per_host=4)
    init = ("init_process_group", "torch/distributed/distributed_c10d.py", 1700)
    put_stacks(made, lambda rank: [init, ("main", "train.py", 12)])
    found = at_its_end(made)
    assert (found.cause, found.ranks) == ("hang.init", ())
    assert any(
        line.startswith("suspected: ") and "set-up of communication" in line for line in found.evidence
    )


def test_the_odd_one_by_its_stack_has_what_usually_lies_behind_its_place(tmp_path):
    made = fleet.write(tmp_path / "run", fault="process_gone", culprit=5, hosts=2, ranks_per_host=4)
    waits = ("all_reduce", "torch/distributed/distributed_c10d.py", 3252)
    loads = ("_try_get_data", "torch/utils/data/dataloader.py", 1200)
    put_stacks(made, lambda rank: [loads if rank == 5 else waits, ("main", "train.py", 88)])
    found = at_its_end(made)
    assert (found.cause, found.ranks) == ("hang.host", (5,))
    assert any(line.startswith("suspected: its data loader") for line in found.evidence)


@pytest.mark.parametrize(
    ("of_rank_5", "of_others", "cause", "ranks"),
    [
        (("_try_get_data", "torch/utils/data/dataloader.py", 1200), "all_reduce", "hang.host", (5,)),
        (None, "all_reduce", "unknown", ()),
        (None, "init_process_group", "hang.init", ()),
    ],
    ids=["the odd one", "all in a collective", "all in set-up"],
)
def test_stacks_of_a_job_of_which_nothing_else_is_known(tmp_path, of_rank_5, of_others, cause, ranks):
    made = fleet.write(tmp_path / "run", fault="hang", culprit=5, hosts=2, ranks_per_host=4)
    for folder in (made.run_dir.signals, made.run_dir.hardware, made.run_dir.comm_traces()):
        shutil.rmtree(folder, ignore_errors=True)
    others = (of_others, "torch/distributed/distributed_c10d.py", 3252)
    put_stacks(made, lambda rank: [of_rank_5 or others if rank == 5 else others, ("main", "train.py", 88)])
    found = at_its_end(made)
    assert (found.cause, found.ranks) == (cause, ranks)
