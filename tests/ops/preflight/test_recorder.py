"""Whether a hang would leave its evidence."""

from ops.preflight.made import event, rank, step, told
from train_ledger.ops.preflight.figures import DumpPlace
from train_ledger.ops.preflight.own_run import OwnRun
from train_ledger.ops.preflight.recorder import HangDrilled, recorder_checks

FINE = {
    number: rank(recorder=(("note", "kill grace", "torchrun kills 30 s after SIGTERM"),))
    for number in range(4)
}
PATH = "TORCH_FR_DUMP_TEMP_FILE"
DRILLED = HangDrilled(right=True, planted=3, named=(3,), cause="hang.host", there=4)


def started(*events):
    return OwnRun({}, {0: {0: {1: step(1)}}}, (event("run_start"), *events))


def test_variables_dumps_and_the_drill_pass():
    found = told(recorder_checks(FINE, started(), DRILLED))
    assert {found[it] for it in ("variables", "your training", "dumps", "drill")} == {"pass"}


def test_a_dump_path_that_cannot_be_written_on_one_rank_fails_and_names_it():
    wrong = (
        ("error", PATH, "/gone: no such folder, so rank 2 cannot write its dump; make it on every host"),
    )
    found = told(recorder_checks({**FINE, 2: rank(recorder=wrong)}, None, DRILLED))
    assert found["variables"] == "fail"
    assert found.said("variables").startswith("rank 2: /gone: no such folder")


def test_the_same_fault_on_all_ranks_is_told_once():
    figures = {
        number: rank(recorder=(("error", PATH, f"/gone: no such folder, so rank {number} cannot write"),))
        for number in range(64)
    }
    assert told(recorder_checks(figures, None, DRILLED)).said("variables").count("/gone") == 1


def test_warnings_of_the_runs_own_last_attempt_fail():
    warned = event("warning", 0, about="TORCH_FR_DUMP_TEMP_FILE", message="lies on overlay")
    assert told(recorder_checks(FINE, started(warned), DRILLED))["your training"] == "fail"
    mended = event("warning", about="TORCH_NCCL_ASYNC_ERROR_HANDLING", message="X=1 was replaced by 3: why")
    assert told(recorder_checks(FINE, started(mended), DRILLED))["your training"] == "pass"
    other = event("warning", 0, about="start", message="peak_flops cannot be used")
    assert told(recorder_checks(FINE, started(other), DRILLED))["your training"] == "pass"


def test_a_missing_dump_and_a_wrong_name_fail():
    lost = HangDrilled(True, 3, (3,), "hang.host", 3, ("rank 2: it did not answer",))
    found = told(recorder_checks(FINE, None, lost))
    assert (found["dumps"], found["drill"]) == ("fail", "pass")
    assert "rank 2: it did not answer" in found.said("dumps")
    innocent = HangDrilled(False, 3, (1,), "hang.host", 4)
    found = told(recorder_checks(FINE, None, innocent))
    assert (found["dumps"], found["drill"]) == ("pass", "fail")


def test_a_drill_that_did_not_run_is_no_pass():
    found = told(recorder_checks({}, None, HangDrilled(why_not="torch is not there")))
    names = ("variables", "dump path", "your training", "drill")
    assert {found[it] for it in names} == {"not_possible"}


def test_the_dump_path_is_written_to_by_every_rank_and_seen_by_one():
    def of(**of_two):
        return {n: rank(dump_place=DumpPlace("/d/rank_", **(of_two if n == 2 else {}))) for n in range(4)}

    assert told(recorder_checks(of(), None, DRILLED))["dump path"] == "pass"
    refused = told(recorder_checks(of(error="Permission denied"), None, DRILLED))
    assert refused["dump path"] == "fail"
    assert refused.said("dump path") == "rank 2 cannot write /d/rank_RANK: Permission denied"
    unseen = told(
        recorder_checks({**of(), 0: rank(dump_place=DumpPlace("/d/rank_", unseen=(1, 3)))}, None, None)
    )
    assert unseen["dump path"] == "fail"
    assert "ranks 1,3" in unseen.said("dump path").replace(", ", ",")


def test_a_folder_of_the_preflights_own_says_nothing_of_productions():
    passing = {
        0: rank(recorder=(("warning", PATH, "/tmp: lies on overlay"),), dump_place=DumpPlace("/tmp/x"))
    }
    found = told(recorder_checks(passing, None, DRILLED, is_own_place=True))
    assert (found["variables"], found["dump path"]) == ("pass", "not_possible")
    assert told(recorder_checks(passing, None, DRILLED))["variables"] == "fail"
