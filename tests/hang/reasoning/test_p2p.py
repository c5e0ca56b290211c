"""Sends and receives: who has not posted, what does not fit, and who is not to blame."""

from __future__ import annotations

from typing import Any

import pytest

from hang.recorder import Job, answer_of, dump_of
from train_ledger.hang.reasoning.groups import build_groups
from train_ledger.hang.reasoning.p2p import p2p_waits


def pipeline(stages: int = 3) -> Job:
    """One step of a pipeline is over: activations forward, gradients back."""
    job = Job(stages)
    job.group("pp", range(stages), "pp")
    job.issue(range(stages), done=True)
    for rank in range(stages - 1):
        job.send(rank, rank + 1, group="pp", done=True)
    for rank in range(stages - 1, 0, -1):
        job.send(rank, rank - 1, group="pp", done=True)
    return job


@pytest.mark.parametrize("waiting", ["send", "recv"])
def test_the_partner_that_has_not_posted_is_named(waiting: str) -> None:
    job = pipeline()
    job.send(1, 2, group="pp", sides=waiting)
    answer = answer_of(job)
    assert (answer.kind, answer.culprits) == ("p2p_unpaired", (2,) if waiting == "send" else (1,))


def test_a_chain_of_stages_leads_to_the_one_that_stopped() -> None:
    """Rank 0 does not send; 1 waits for it, 2 for 1."""
    job = pipeline()
    job.send(0, 1, group="pp", sides="recv")
    job.send(1, 2, group="pp", sides="recv")
    answer = answer_of(job)
    assert (answer.kind, answer.culprits, answer.victims_of) == ("p2p_unpaired", (0,), {0: (1, 2)})


def test_a_partner_whose_side_is_over_is_not_accused() -> None:
    """The send is over, the receive of the same is not: its receiver's GPU, or the link."""
    job = pipeline(2)
    job.post(0, "send", 1, group="pp", done=True)
    job.post(1, "recv", 0, group="pp")
    answer = answer_of(job)
    assert (answer.verdict, answer.kind, answer.culprits) == ("hang", "no_mismatch", ())


def test_both_sides_there_and_none_over_is_the_fabric() -> None:
    job = pipeline(2)
    job.send(0, 1, group="pp")
    answer = answer_of(job)
    assert (answer.verdict, answer.kind, answer.culprits) == ("hang", "no_mismatch", ())


def test_who_waits_for_other_partners_at_the_same_number_is_told_too() -> None:
    """Both stages 1 stopped; the pairs are of one group and of one number."""
    job = Job(4)
    job.issue(range(4), done=True)
    for sender, receiver in ((0, 1), (2, 3)):
        job.send(sender, receiver, sides="send")
    answer = answer_of(job)
    assert (answer.kind, answer.culprits, answer.findings[0].waiting) == ("p2p_unpaired", (1, 3), (0, 2))
    assert "ranks 0,2 wait each in a send" in answer.findings[0].evidence[0]


@pytest.mark.parametrize(
    ("send", "receive", "kind"),
    [
        ({"size": [[4, 8]]}, {"size": [[4, 9]]}, "size_or_syntax_mismatch"),
        ({"size": [[0]]}, {"size": [[4]]}, "size_or_syntax_mismatch"),
        ({"dtype": "Float"}, {"dtype": "BFloat16"}, "collective_dtype_mismatch"),
        ({"size": [[4]], "done": True}, {"size": [[8]]}, "size_or_syntax_mismatch"),
    ],
    ids=["size", "nothing for something", "type", "the sender's side is over"],
)
def test_a_pair_that_does_not_fit_is_told_and_nobody_accused(
    send: dict[str, Any], receive: dict[str, Any], kind: str
) -> None:
    job = pipeline(3)
    job.post(0, "send", 1, group="pp", **send)
    job.post(1, "recv", 0, group="pp", **receive)
    answer = answer_of(job)
    assert (answer.verdict, answer.kind, answer.culprits) == ("hang", kind, ())
    assert answer.findings[0].waiting == (0, 1)
    assert any("rank 0 sends what rank 1 does not expect" in line for line in answer.findings[0].evidence)


@pytest.mark.parametrize(("send", "receive"), [([[2, 6]], [[12]]), ([[0]], [[0, 5]]), ([[]], [[1]])])
def test_shapes_may_differ_where_the_elements_are_as_many(send: Any, receive: Any) -> None:
    job = pipeline(2)
    job.post(0, "send", 1, group="pp", size=send)
    job.post(1, "recv", 0, group="pp", size=receive)
    assert answer_of(job).kind == "no_mismatch"


def test_two_sends_that_cross_are_a_circle() -> None:
    job = pipeline(2)
    job.post(0, "send", 1, group="pp")
    job.post(1, "send", 0, group="pp")
    answer = answer_of(job)
    assert (answer.kind, answer.culprits) == ("cycle", (0, 1))


def test_sends_around_a_ring_of_stages_are_a_circle() -> None:
    job = pipeline(4)
    for rank in range(4):
        job.post(rank, "recv", (rank + 1) % 4, group="pp")
    assert answer_of(job).culprits == (0, 1, 2, 3)


def test_the_ranks_of_a_group_are_taken_as_listed() -> None:
    """The group lists 7, 2, 5: "recv 2<-0" waits on rank 5 for rank 7."""
    job = Job(8)
    job.group("pp", [7, 2, 5], "pp")
    job.issue(range(8), done=True)
    job.post(5, "recv", 7, group="pp")
    answer = answer_of(job)
    assert answer.culprits == (7,)
    assert "recv from rank 7 to rank 5" in answer.findings[0].evidence[0]


def test_a_send_to_a_receive_from_any_source_is_not_unpaired() -> None:
    job = pipeline(3)
    job.receive_from_any(1, group="pp")
    job.post(0, "send", 1, group="pp")
    answer = answer_of(job)
    assert answer.culprits == ()


def test_a_batch_has_the_state_of_its_closing_entry() -> None:
    """Members of batch_isend_irecv stay scheduled for ever; the one of rank 1 is not over."""
    job = pipeline(3)
    for rank, peer in ((0, 1), (1, 0)):
        job.post(rank, "send", peer, group="pp")
        job.close_batch(rank, group="pp", done=True)
    job.post(1, "recv", 2, group="pp")
    job.close_batch(1, group="pp", done=False)
    answer = answer_of(job)
    assert (answer.kind, answer.culprits, answer.victims_of) == ("p2p_unpaired", (2,), {2: (1,)})


def test_a_collective_and_a_batch_of_one_number_are_not_one_operation() -> None:
    """all_reduce 1 and batch 1 of the same group (pytorch 139280)."""
    job = Job(2)
    job.issue(range(2), done=True)
    job.send(0, 1)
    for rank in range(2):
        job.close_batch(rank, done=True)
    job.issue([0])
    answer = answer_of(job)
    assert (answer.kind, answer.culprits, answer.seq) == ("missing_ranks", (1,), 2)


def test_what_may_have_fallen_off_the_partners_ring_is_not_unposted() -> None:
    """Rank 1 posted its receive long ago, and went on with another group."""
    job = Job(3)
    job.group("pp", [0, 1], "pp")
    job.group("busy", [1, 2], "busy")
    job.send(0, 1, group="pp")
    for _ in range(40):
        job.issue([1, 2], group="busy", done=True)
    answer = answer_of(job, ring=20)
    assert (answer.verdict, answer.culprits) == ("cannot_tell", ())


def test_who_stands_in_a_collective_before_its_send_is_a_victim() -> None:
    job = pipeline(3)
    job.group("tp", [1, 2], "tp")
    job.issue([1, 2], group="tp", done=True)
    job.issue([1], group="tp")
    job.send(1, 0, group="pp", sides="recv")
    answer = answer_of(job)
    assert (answer.culprits, answer.victims_of) == ((2,), {2: (0, 1)})


@pytest.mark.parametrize("label", ["nccl:send 0->99", "nccl:send 5->0", "nccl:recv ?<-?", "nccl:send 0->-1"])
def test_places_that_the_group_does_not_have_name_nobody(label: str) -> None:
    job = pipeline(2)
    job.post(0, "send", 1, group="pp")
    job.entries[0][-1]["profiling_name"] = label
    assert answer_of(job).culprits == ()


def one_step_in_batches(job: Job) -> None:
    """Rank 0 sends to rank 1 alone, rank 1 on to rank 2, too; each in a batch that is over."""
    for rank, peers in ((0, [("send", 1)]), (1, [("recv", 0), ("send", 2)]), (2, [("recv", 1)])):
        for verb, peer in peers:
            job.post(rank, verb, peer, group="pp")
        for entry in job.entries[rank][-len(peers) :]:
            entry["p2p_seq_id"] = job.entries[rank][-1]["p2p_seq_id"]
        job.close_batch(rank, group="pp", done=True)


def test_members_of_batches_are_over_in_dumps_of_active_entries_alone() -> None:
    """Their closing entries, which say so, are left out of these; rank 1 does not come to the next."""
    job = pipeline()
    for _ in range(3):
        one_step_in_batches(job)
        job.issue(range(3), done=True)
    one_step_in_batches(job)
    job.issue([0, 2])
    job.enqueued = {1: {"1": 12}}
    answer = answer_of(job, active_only=True)
    assert (answer.kind, answer.culprits, answer.seq) == ("missing_ranks", (1,), 5)


def test_members_of_batches_that_fell_off_one_ring_accuse_nobody() -> None:
    """What is left of old batches on rank 2 has no other side on rank 1, whose ring is full of other work."""
    job = pipeline()
    for _ in range(3):
        one_step_in_batches(job)
        job.issue(range(3), done=True)
    job.issue([0, 2])
    job.entries[1] = [it for it in job.entries[1] if not it["is_p2p"]]
    answer = answer_of(job, active_only=True)
    assert (answer.kind, answer.culprits) == ("missing_ranks", (1,))


def test_parts_of_a_coalesced_collective_are_over_in_dumps_of_active_entries_alone() -> None:
    job = Job(3)
    job.issue(range(3), done=True)
    for name in ("_broadcast_oop", "_broadcast_oop", "ALLGATHER_coalesced"):
        job.issue(range(3), name, done=name.endswith("coalesced"))
    for rank in range(3):
        for entry in job.entries[rank][-3:]:
            entry["collective_seq_id"] = 2
    job.issue([0, 2])
    for rank in (0, 2):
        job.entries[rank][-1]["collective_seq_id"] = 3
    job.enqueued = {1: {"0": 2}}
    answer = answer_of(job, active_only=True)
    assert (answer.kind, answer.culprits, answer.seq) == ("missing_ranks", (1,), 3)


def test_more_pending_than_a_reader_hands_on_are_no_sign_that_all_is_well() -> None:
    """Both post all their sends before their receives, which are out of sight; none of it goes on."""
    job = Job(2, frames=False)
    job.issue(range(2), done=True)
    for verb in ("send", "recv"):
        for rank in (0, 1):
            for _ in range(300):
                job.post(rank, verb, 1 - rank)
    answer = answer_of(job)
    assert (answer.verdict, answer.culprits) == ("cannot_tell", ())
    assert any("sends and receives of ranks 0-1: those after" in line for line in answer.not_observed)


def test_one_of_more_pairs_than_a_reader_counts_is_not_unposted() -> None:
    """Each of two ranks sends to 599 others, then receives from them; the other's receive is not counted."""
    job = Job(600, frames=False)
    for verb in ("send", "recv"):
        for rank, other in ((0, 599), (599, 0)):
            for peer in [other, *range(1, 599)] if verb == "send" else [*range(1, 599), other]:
                job.post(rank, verb, peer)
    (view,), _ = build_groups([dump_of(job, rank) for rank in (0, 599)], range(600))
    assert not any(wait.late for wait in p2p_waits(view))
