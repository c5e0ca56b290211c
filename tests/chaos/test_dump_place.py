"""Where dumps fall that nobody gave a place, and what is said of it."""

import os
import time

from train_ledger.chaos.dump_place import look


def test_gloo_leaves_nothing_and_that_is_said(tmp_path):
    place = look(time.time(), "gloo", True, {"HOME": str(tmp_path)})
    assert place.prefix == f"{tmp_path}/.cache/torch/comm_lib_trace_rank_"
    assert place.written == ()
    assert "torch wrote no dump at all" in place.said[0]
    assert "not observed here" in place.said[1]
    assert any("no such folder" in line for line in place.said)


def test_what_the_job_left_is_listed_and_what_an_older_one_left_is_not(tmp_path):
    folder = tmp_path / "torch"
    folder.mkdir()
    began = time.time()
    for name, age_s in (("comm_lib_trace_rank_0", 0), ("comm_lib_trace_rank_1", 3600), ("other", 0)):
        (folder / name).touch()
        os.utime(folder / name, (began + 1 - age_s, began + 1 - age_s))
    environ = {"XDG_CACHE_HOME": str(tmp_path), "TORCH_FR_DUMP_TEMP_FILE": "/elsewhere/rank_"}
    place = look(began, "nccl", True, environ)
    assert place.written == (f"{folder}/comm_lib_trace_rank_0",)
    assert "1 dump in its own place" in place.said[0]


def test_a_job_that_was_ended_before_is_told_from_one_that_timed_out(tmp_path):
    said = look(time.time(), "nccl", False, {"HOME": str(tmp_path)}).said
    assert said[0].startswith("the job was ended before its time-out")
