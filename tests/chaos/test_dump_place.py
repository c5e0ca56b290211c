"""Where dumps fall that nobody gave a place, and what is said of it."""

import os
import time

from train_ledger.chaos.dump_place import look


def test_gloo_leaves_nothing_and_that_is_said(tmp_path):
    place = look(time.time(), "gloo", True, tmp_path / "asked", {"HOME": str(tmp_path)})
    assert place.prefix == f"{tmp_path}/.cache/torch/comm_lib_trace_rank_"
    assert place.written == ()
    assert "torch wrote no dump at all" in place.said[0]
    assert "not observed here" in place.said[0]
    assert place.said[1].startswith(f"{tmp_path}: lies on ")
    assert "no dumps outlived it" in place.said[-1]


def test_what_the_job_left_is_listed_and_what_an_older_one_left_is_not(tmp_path):
    folder = tmp_path / "torch"
    folder.mkdir()
    began = time.time()
    for name, age_s in (("comm_lib_trace_rank_0", 0), ("comm_lib_trace_rank_1", 3600), ("other", 0)):
        (folder / name).touch()
        os.utime(folder / name, (began + 1 - age_s, began + 1 - age_s))
    environ = {"XDG_CACHE_HOME": str(tmp_path), "TORCH_FR_DUMP_TEMP_FILE": "/elsewhere/rank_"}
    place = look(began, "nccl", True, tmp_path, environ)
    assert place.written == (f"{folder}/comm_lib_trace_rank_0",)
    assert "torch left 1 dump there" in place.said[0]


def test_a_job_that_was_ended_before_is_told_from_one_that_timed_out(tmp_path):
    (tmp_path / "rank_0").touch()
    (tmp_path / ".rank_1.half").touch()
    said = look(time.time(), "nccl", False, tmp_path, {"HOME": str(tmp_path)}).said
    assert said[0].startswith("the job was ended before its time-out; torch left no dump there")
    assert f"1 dump outlived it in {tmp_path}" in said[-1]
