"""A log of every rank, and where every rank runs."""

import json

from ops.preflight.made import told
from train_ledger.ops.preflight.logs import log_checks, places
from train_ledger.run_dir import RunDir


def torchrun_logs(folder, ranks):
    for rank in range(ranks):
        place = folder / "run_x" / "attempt_0" / str(rank)
        place.mkdir(parents=True)
        (place / "stderr.log").touch()


def test_one_file_a_rank_and_a_whole_map_pass(tmp_path):
    torchrun_logs(tmp_path, 4)
    known = {rank: ("n0", f"GPU-{rank}") for rank in range(4)}
    found = told(log_checks([tmp_path], 4, known, True, "the drill"))
    assert (found["logs"], found["rank map"]) == ("pass", "pass")


def test_two_nodes_have_the_same_local_ranks(tmp_path):
    torchrun_logs(tmp_path / "node0", 2)
    torchrun_logs(tmp_path / "node1", 2)
    assert told(log_checks([tmp_path], 4, {}, False, "it"))["logs"] == "pass"


def test_fewer_logs_than_ranks_and_none_at_all_fail(tmp_path):
    assert told(log_checks([tmp_path / "gone"], 4, {}, False, "it"))["logs"] == "fail"
    torchrun_logs(tmp_path, 3)
    found = told(log_checks([tmp_path], 4, {}, False, "it"))
    assert found["logs"] == "fail"
    assert "of 3 ranks, and there are 4" in found.said("logs")


def test_files_that_are_named_by_rank_count_too(tmp_path):
    for name in ("rank_0.log", "rank_1.log", "worker.2.out", "notes.txt"):
        (tmp_path / name).touch()
    assert told(log_checks([tmp_path], 3, {}, False, "it"))["logs"] == "pass"


def test_a_rank_without_a_host_or_on_gpus_without_a_gpu_fails():
    known = {0: ("n0", "GPU-0"), 1: ("n0", None)}
    assert told(log_checks([], 3, known, False, "it"))["rank map"] == "fail"
    assert "rank 2" in told(log_checks([], 3, known, False, "it")).said("rank map")
    assert told(log_checks([], 2, known, True, "it"))["rank map"] == "fail"
    assert told(log_checks([], 2, known, False, "it"))["rank map"] == "pass"


def test_places_are_read_from_what_the_ranks_wrote(tmp_path):
    run_dir = RunDir(tmp_path)
    run_dir.signals.mkdir()
    start = {"t": 1.0, "rank": 0, "event": "run_start", "host": "n0", "uuid": "GPU-a"}
    run_dir.signals_of(0).write_text(json.dumps(start) + "\n")
    run_dir.signals_of(1).write_text("no json\n")
    run_dir.ranks_jsonl.write_text('{"rank": 1, "host": "n1", "gpu": 3}\ngarbage\n{"rank": true}\n[1]\n')
    assert places(run_dir) == {0: ("n0", "GPU-a"), 1: ("n1", "3")}
