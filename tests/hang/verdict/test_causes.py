"""Each row of the table of common causes, and what leads to it."""

from __future__ import annotations

import pytest

from train_ledger.answer import HANG_KINDS, Finding, HangAnswer
from train_ledger.hang.knowledge import GpuFault, RankKnowledge
from train_ledger.hang.stacks.stands import Kind, Stand
from train_ledger.hang.verdict.causes import Signs, is_in_code, suspect
from train_ledger.hang.verdict.next_commands import reproduced_by
from train_ledger.hang.verdict.reproduce import reproduction

ONE = ((4, 1024),)


def at(kind: Kind, what: str = "") -> Stand:
    return Stand("host", what, None, kind)


@pytest.mark.parametrize("kind", HANG_KINDS)
def test_every_kind_has_a_cause_and_a_fix_though_nothing_more_is_known(kind) -> None:
    found = suspect(Signs(kind))
    assert found.cause
    assert found.fix


@pytest.mark.parametrize(
    ("signs", "words"),
    [
        (Signs("missing_ranks", stand=at("loader")), "data loader"),
        (Signs("missing_ranks", stand=at("checkpoint")), "checkpoint"),
        (Signs("missing_ranks", stand=at("gpu")), ".item()"),
        (Signs("missing_ranks", stand=at("lock")), "lock"),
        (Signs("missing_ranks", stand=at("log")), "log line"),
        (Signs("missing_ranks", stand=at("compile")), "compiles"),
        (Signs("missing_ranks", stand=at("gc")), "garbage"),
        (Signs("missing_ranks", stand=at("set_up")), "set-up"),
        (Signs("missing_ranks", stand=at("tear_down")), "left the training loop"),
        (
            Signs("missing_ranks", stand=at("own", "runs, and holds the interpreter's lock")),
            "interpreter's lock",
        ),
        (Signs("missing_ranks", rank=RankKnowledge(1, no_gil=True)), "interpreter's lock"),
        (Signs("missing_ranks", rank=RankKnowledge(1, stuck=True)), "CUDA call"),
        (
            Signs("missing_ranks", rank=RankKnowledge(1, gpu_faults=(GpuFault(79, level="page"),))),
            "GPU failed",
        ),
        (Signs("missing_ranks", rank=RankKnowledge(1, no_memory=True)), "want of memory"),
        (Signs("missing_ranks", fell=True, rank=RankKnowledge(1, exception="StopIteration")), "ran out"),
        (
            Signs("missing_ranks", fell=True, rank=RankKnowledge(1, exception="OutOfMemoryError: CUDA")),
            "GPU memory",
        ),
        (Signs("missing_ranks", fell=True, rank=RankKnowledge(1, signal=9)), "SIGKILL"),
        (Signs("missing_ranks", fell=True), "ended or raised"),
        (Signs("collective_type_mismatch", "barrier", "all_reduce"), "ran out one batch"),
        (Signs("collective_type_mismatch", "all_gather", "all_reduce", shift="skipped"), "left out one call"),
        (Signs("collective_type_mismatch", "all_gather", "all_reduce", shift="extra"), "one call more"),
        (Signs("collective_type_mismatch", "all_gather", "all_reduce", shift="swapped"), "other order"),
        (Signs("collective_type_mismatch", "all_gather", "all_reduce"), "branch"),
        (Signs("size_or_syntax_mismatch", sizes=(((4, 1000),), ONE)), "variable length"),
        (Signs("size_or_syntax_mismatch", sizes=(((3, 1024),), ONE)), "last one of its loader"),
        (Signs("size_or_syntax_mismatch", sizes=(((7,),), ONE)), "another tensor"),
        (Signs("collective_dtype_mismatch"), "mixed-precision"),
        (Signs("cycle"), "different orders"),
        (Signs("p2p_unpaired"), "pipeline schedule"),
        (Signs("completion_laggard"), "does not run what it was given"),
    ],
)
def test_what_is_known_picks_the_row(signs, words) -> None:
    assert words in suspect(signs).cause


def test_where_a_rank_stands_does_not_explain_what_it_brought() -> None:
    signs = Signs("collective_type_mismatch", "all_gather", "all_reduce", stand=at("loader"))
    assert "branch" in suspect(signs).cause


def test_an_xid_that_stops_nothing_is_no_cause() -> None:
    rank = RankKnowledge(1, gpu_faults=(GpuFault(43, level="record"),))
    assert "GPU failed" not in suspect(Signs("missing_ranks", rank=rank)).cause


DETAIL = (
    "TORCH_DISTRIBUTED_DEBUG=DETAIL TORCH_CPP_LOG_LEVEL=INFO TORCH_FR_BUFFER_SIZE=20000 "
    "TORCH_FR_DUMP_TEMP_FILE=/tmp/fr_rank_"
)


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("torchrun --nproc-per-node 4 train.py", f"{DETAIL} torchrun --nproc-per-node=8 train.py"),
        (
            "torchrun --nnodes=16 --nproc_per_node=gpu --rdzv-endpoint=n0:1 --rdzv-backend c10d a.py --lr 1",
            f"{DETAIL} torchrun --nnodes=1 --nproc_per_node=8 a.py --lr 1",
        ),
        ("cd /job && torchrun train.py", f"(export {DETAIL}; cd /job && torchrun train.py)"),
        ("sbatch job.sh", f"(export {DETAIL}; sbatch job.sh)"),
        (None, None),
    ],
)
def test_the_runs_own_command_reproduces_it(command, line) -> None:
    assert reproduction(command) == line


def test_the_command_of_the_run_takes_the_place_of_the_script_from_a_stack() -> None:
    cause = suspect(Signs("cycle")).cause
    assert is_in_code(cause)
    answer = HangAnswer("hang", findings=(Finding("cycle", (), None, 1, "x", cause_suspected=cause),))
    (told,) = reproduced_by(answer, "torchrun train.py").next
    assert told.command.endswith("torchrun train.py")
    assert (
        reproduced_by(reproduced_by(answer, "torchrun a.py"), "torchrun b.py")
        .next[0]
        .command.endswith("b.py")
    )


def test_hardware_is_not_reproduced() -> None:
    cause = suspect(Signs("no_mismatch")).cause
    answer = HangAnswer("hang", findings=(Finding("no_mismatch", (), None, 1, "x", cause_suspected=cause),))
    assert reproduced_by(answer, "torchrun train.py") == answer


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ({2: ["all_gather"]}, "left out one call"),
        ({2: ["broadcast", "all_reduce", "all_gather"]}, "one call more"),
        ({2: ["all_gather", "all_reduce"]}, "other order"),
    ],
    ids=["skipped", "extra", "swapped"],
)
def test_the_calls_that_came_next_tell_what_the_rank_did(calls, words) -> None:
    from hang.recorder import Job, answer_of

    job = Job(4)
    job.issue(range(4), "barrier", done=True)
    for rank in range(4):
        for op in calls.get(rank, ["all_reduce", "all_gather"]):
            job.issue([rank], op)
    answer = answer_of(job)
    assert (answer.kind, answer.culprits) == ("collective_type_mismatch", (2,))
    assert words in (answer.findings[0].cause_suspected or "")
