"""What the dumps exclude is not said where something else names it."""

from __future__ import annotations

from hang.recorder import Job, answer_of
from train_ledger.answer import HANG_KINDS, RuledOut
from train_ledger.hang import RankKnowledge
from train_ledger.hang.knowledge import Brought
from train_ledger.hang.verdict.ruled_out import contradicts


def test_dumps_in_which_nothing_is_pending_rule_no_hang_out_where_a_rank_raised() -> None:
    job = Job(2)
    job.issue(range(2), done=True)
    assert [it.cause for it in answer_of(job).ruled_out] == ["a collective that hangs"]
    raised = {1: RankKnowledge(1, exception="ValueError: no")}
    answer = answer_of(job, known=raised)
    assert answer.culprits == (1,)
    assert answer.ruled_out == ()


def test_what_logs_say_was_brought_goes_before_the_dumps_that_are_there() -> None:
    """Rank 3 left no dump, and the checks of DETAIL say that it came with another size."""
    job = Job(4)
    job.issue([0, 1, 2])
    known = {
        rank: RankKnowledge(rank, brought=Brought("ALLREDUCE", 1, "[8]" if rank == 3 else "[4]", "Float"))
        for rank in range(4)
    }
    answer = answer_of(job, [0, 1, 2], known=known)
    kinds = {finding.kind for finding in answer.findings}
    assert not [it for it in answer.ruled_out for kind in kinds if contradicts(it, kind)]


def test_every_kind_of_finding_says_that_something_hangs() -> None:
    out = RuledOut("a collective that hangs", "nothing is pending")
    assert all(contradicts(out, kind) for kind in HANG_KINDS)
