"""What is drawn of a hang: the table, the graph of waits, the lanes, the stacks."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hang.recorder import Job, dump_of
from train_ledger.hang.analysis import Examination, examination_of
from train_ledger.hang.dumps.dump_files import Dumps
from train_ledger.hang.stacks.frames import Frame
from train_ledger.hang.stacks.stack_files import RankStack, Thread
from train_ledger.render import as_html, as_text
from train_ledger.render.picture import Graph, Picture, Table

_values = (
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.lists(st.integers(), max_size=3)
)


def _examined(job: Job, ranks: range | list[int] | None = None, **more: object) -> Examination:
    wanted = range(job.world) if ranks is None else ranks
    dumps = Dumps(tuple(dump_of(job, rank) for rank in wanted))
    return examination_of(dumps, world_size=job.world, **more)  # type: ignore[arg-type]


def _table(job: Job, ranks: range | list[int] | None = None) -> Table:
    return _examined(job, ranks).picture.tables[0][0]


def _rows(table: Table) -> list[tuple[str, ...]]:
    return [(step.label, *(cell.text for cell in step.cells)) for step in table.steps]


def _walk_through() -> Job:
    """Eight ranks of FSDP; rank 5 all_reduces a flag where the others gather."""
    job = Job(8)
    others = [0, 1, 2, 3, 4, 6, 7]
    for op in ("_allgather_base", "_reduce_scatter_base"):
        job.issue(range(8), op, size=((2097152,),), dtype="BFloat16", done=True)
    job.issue(others, "_allgather_base", size=((2097152,),), dtype="BFloat16")
    job.issue([5], "all_reduce", size=((1,),))
    return job


def test_the_table_of_the_walk_through() -> None:
    table = _table(_walk_through())
    assert [(it.ranks, it.note) for it in table.columns] == [
        ((0, 1, 2, 3, 4, 6, 7), ""),
        ((5,), "culprit"),
    ]
    gather, scatter = "all_gather_into_tensor [2097152] BFloat16", "reduce_scatter_tensor [2097152] BFloat16"
    assert _rows(table) == [
        ("1", f"{gather}, completed", f"{gather}, completed"),
        ("2", f"{scatter}, completed", f"{scatter}, completed"),
        ("3", f"{gather}, scheduled", "all_reduce [1] Float, scheduled"),
    ]
    assert [step.here for step in table.steps] == [False, False, True]
    assert [cell.mark for cell in table.steps[-1].cells] == ["pending", "odd"]


def test_who_has_not_come_and_who_left_no_dump_are_told_apart() -> None:
    job = Job(4)
    job.issue(range(4), done=True)
    job.issue([0, 1])
    table = _table(job, [0, 1, 2])
    here = next(step for step in table.steps if step.here)
    assert {column.ranks: cell.text for column, cell in zip(table.columns, here.cells, strict=True)} == {
        (0, 1): "all_reduce [4] Float, scheduled",
        (2,): "has not come",
        (3,): "not known: no dump",
    }


def test_a_wait_that_cannot_be_explained_is_shown_with_the_dump_that_was_not_read() -> None:
    job = Job(3)
    job.issue(range(3))
    read = Dumps(tuple(dump_of(job, rank) for rank in (0, 2)), damaged=(1,))
    examined = examination_of(read, world_size=3)
    assert (examined.answer.verdict, examined.answer.findings) == ("cannot_tell", ())
    ((table,),) = examined.picture.tables
    assert _rows(table) == [("1", "all_reduce [4] Float, scheduled", "not known: its dump could not be read")]


def test_what_was_queued_behind_is_counted() -> None:
    job = Job(2)
    job.issue(range(2), done=True)
    for _ in range(9):
        job.issue([0])
    table = _table(job)
    assert [step.label for step in table.steps] == ["1", "2", "3", "4", "5"]
    assert table.notes == ("and 5 more behind it, up to number 10",)
    assert table.steps[2].cells[1].text == "not issued"


def test_a_gpu_that_does_not_finish_stands_beside_those_that_did() -> None:
    job = Job(3)
    job.issue(range(3), done=True)
    job.issue([0, 1], done=True)
    job._issued[2, "0"] = 1
    job.issue([2])
    job.issue([0, 1])
    table = _table(job)
    here = next(step for step in table.steps if step.here)
    assert [cell.mark for cell in here.cells] == ["done", "odd"]


def test_each_of_a_thousand_ranks_with_its_own_size_makes_no_thousand_columns() -> None:
    job = Job(64, frames=False)
    for rank in range(64):
        job.issue([rank], "all_to_all", size=((rank + 1,),))
    job.issue(range(63), "all_reduce")
    assert len(_table(job).columns) <= 5


def test_a_circle_shows_two_of_its_groups_and_where_else_they_wait() -> None:
    tables = _examined(_circle()).picture.tables[0]
    assert [table.title for table in tables] == ["group x (tp), ranks 0-1", "group y (dp), ranks 1-2"]
    assert _rows(tables[0])[-1] == ("elsewhere", "nothing pending", "all_reduce, number 2 of its dp group")


def _circle() -> Job:
    job = Job(3)
    groups = {"x": [0, 1], "y": [1, 2], "z": [2, 0]}
    for (name, ranks), desc in zip(groups.items(), ("tp", "dp", "cp"), strict=True):
        job.group(name, ranks, desc)
    for name, ranks in groups.items():
        job.issue(ranks, group=name, done=True)
    for rank, name in enumerate(groups):
        job.issue([rank], group=name)
    return job


def test_a_circle_is_a_circle_in_the_graph() -> None:
    graph = _graph(_circle())
    assert [node.ranks for node in graph.nodes] == [(0,), (1,), (2,)]
    assert {(edge.start, edge.end): edge.label for edge in graph.edges} == {
        (0, 1): "tp, number 2",
        (1, 2): "dp, number 2",
        (2, 0): "cp, number 2",
    }


def _graph(job: Job) -> Graph:
    graph = _examined(job).picture.graph
    assert graph is not None
    return graph


def _mesh(world: int, width: int, culprit: int) -> Job:
    """TP groups of `width` and DP groups across them; `culprit` does not come to its TP group."""
    job = Job(world, frames=False)
    tp = {f"tp_{i}": list(range(i, i + width)) for i in range(0, world, width)}
    dp = {f"dp_{j}": list(range(j, world, width)) for j in range(width)}
    for name, ranks in {**tp, **dp}.items():
        job.group(name, ranks, f"mesh_{name[:2]}")
        job.issue(ranks, group=name, done=True)
    for name, ranks in tp.items():
        came = [rank for rank in ranks if rank != culprit]
        job.issue(came, group=name, done=culprit not in ranks)
    stuck = next(ranks for ranks in tp.values() if culprit in ranks)
    for name, ranks in dp.items():
        job.issue([rank for rank in ranks if rank not in stuck], "reduce_scatter", group=name)
    return job


def test_victims_stand_behind_the_root_that_blocks_them() -> None:
    graph = _graph(_mesh(8, 2, culprit=5))
    layers = {node.ranks: (node.layer, node.is_culprit) for node in graph.nodes}
    assert layers == {(5,): (0, True), (4,): (1, False), (1, 3, 7): (1, False), (0, 2, 6): (2, False)}
    by_ranks = {(graph.nodes[it.start].ranks, graph.nodes[it.end].ranks): it.label for it in graph.edges}
    assert by_ranks == {
        ((4,), (5,)): "mesh_tp, number 2",
        ((1, 3, 7), (5,)): "mesh_dp, number 2",
        ((0, 2, 6), (4,)): "mesh_dp, number 2",
    }


@settings(max_examples=20, deadline=None)
@given(st.sampled_from([4, 8, 16]), st.data())
def test_every_rank_that_waits_is_in_exactly_one_node(width: int, data: st.DataObject) -> None:
    culprit = data.draw(st.integers(0, 63))
    graph = _graph(_mesh(64, width, culprit))
    ranks = [rank for node in graph.nodes for rank in node.ranks]
    assert sorted(ranks) == list(range(64))
    assert len(graph.nodes) <= 24
    assert [node.ranks for node in graph.nodes if node.is_culprit] == [(culprit,)]
    assert all(graph.nodes[it.start].layer > graph.nodes[it.end].layer for it in graph.edges)


def test_of_waits_that_are_all_different_some_are_drawn_and_the_others_counted() -> None:
    """Sixty pairs, each of a kind of its own: nothing of them can be drawn as one."""
    job = Job(120, frames=False)
    for rank in range(0, 120, 2):
        job.group(f"pair_{rank}", [rank, rank + 1], f"kind_{rank}")
        job.issue([rank], group=f"pair_{rank}")
    found = _examined(job)
    graph = found.picture.graph
    assert graph is not None
    assert len(graph.nodes) <= 24
    assert sum(len(node.ranks) for node in graph.nodes) + graph.left_out == 120
    assert f"{graph.left_out} more ranks are not drawn" in as_html(found.answer, picture=found.picture)


def test_lanes_lie_upon_each_other_at_the_last_operation_before_the_hang() -> None:
    lanes = _examined(_mesh(8, 2, culprit=5)).picture.lanes
    assert lanes is not None
    first = lanes.lanes[0]
    assert (first.ranks, first.is_culprit) == ((5,), True)
    at_anchor = {lane.cells[lanes.anchor] for lane in lanes.lanes}
    assert {cell.text for cell in at_anchor if cell} == {"mesh_tp 1: all_reduce, completed"}
    ends = {lane.ranks: [cell.text for cell in lane.cells if cell][-1] for lane in lanes.lanes}
    assert ends == {
        (5,): "mesh_dp 1: all_reduce, completed",
        (4,): "mesh_tp 2: all_reduce, scheduled",
        (0, 1, 2, 3, 6, 7): "mesh_dp 2: reduce_scatter, scheduled",
    }


def test_who_came_with_a_rank_that_is_held_up_elsewhere_waits_for_it() -> None:
    job = Job(4, frames=False)
    for name, ranks, desc in (
        ("t0", [0, 1], "tp"),
        ("t1", [2, 3], "tp"),
        ("d0", [0, 2], "dp"),
        ("d1", [1, 3], "dp"),
    ):
        job.group(name, ranks, desc)
        job.issue(ranks, group=name, done=True)
    job.issue([0, 1], group="t0", done=True)
    job.issue([2], group="t1", done=True)
    job.issue([3], group="t1")  # its GPU does not finish
    job.issue([2], group="t1")
    job.issue([1, 3], group="d1")
    graph = _graph(job)
    assert [(node.ranks, node.layer) for node in graph.nodes] == [((3,), 0), ((2,), 1), ((1,), 2)]
    assert sorted((it.start, it.label) for it in graph.edges if it.end == 0) == [
        (1, "tp, number 3"),
        (2, "dp, number 2"),
    ]


def test_a_culprit_without_any_entry_has_a_lane_too() -> None:
    job = Job(3)
    job.issue([0, 1])
    lanes = _examined(job).picture.lanes
    assert lanes is not None
    assert [cell.text for cell in lanes.lanes[0].cells if cell] == ["no entry to be read"]


def test_a_send_without_its_receive_stands_beside_the_empty_place() -> None:
    job = Job(4)
    job.issue(range(4), done=True)
    job.send(1, 2, sides="recv")
    table = _table(job)
    assert table.title == "recv in group 0 (default_pg)"
    assert [(it.ranks, it.note) for it in table.columns] == [((2,), ""), ((1,), "culprit")]
    assert _rows(table) == [("1", "recv 1 to 2 [4] Float, scheduled", "no send posted")]


def test_stacks_are_merged_and_the_odd_one_leads() -> None:
    def stack(rank: int, file: str, function: str) -> RankStack:
        return RankStack(rank, None, None, (Thread("MainThread", True, (Frame(file, 7, function),)),))

    c10d = "/opt/torch/distributed/distributed_c10d.py"
    stacks = {rank: stack(rank, c10d, "all_reduce") for rank in range(7)}
    stacks[7] = stack(7, "/job/train.py", "read_batch")
    job = Job(8, frames=False)
    job.issue(range(8), done=True)
    job.issue(range(7))
    shown = _examined(job, stacks=stacks).picture.stacks
    assert [(it.ranks, it.is_odd) for it in shown] == [((7,), True), (tuple(range(7)), False)]
    assert shown[0].frames == ("/job/train.py:7 read_batch",)


@pytest.mark.parametrize("ranks", [[], [0]])
def test_nothing_to_draw_is_an_empty_picture(ranks: list[int]) -> None:
    job = Job(1)
    job.issue([0], done=True)
    picture = _examined(job, ranks).picture
    assert picture == Picture()


def test_the_answer_is_that_of_the_analysis() -> None:
    examined = _examined(_walk_through())
    assert examined.answer.culprits == (5,)
    assert len(examined.picture.tables) == len(examined.answer.findings)


@st.composite
def _jobs(draw: st.DrawFn) -> tuple[Job, list[int]]:
    """Any job of a few ranks and groups in which anybody issues anything, and the ranks that left a dump."""
    world = draw(st.integers(1, 6))
    ranks = st.lists(st.integers(0, world - 1), min_size=1, max_size=world, unique=True)
    job = Job(world, frames=draw(st.booleans()), backend=draw(st.sampled_from(["nccl", "gloo", "ucc"])))
    for name in ("a", "b"):
        job.group(name, draw(ranks), draw(st.sampled_from(["", "tp", "undefined"])))
    for _ in range(draw(st.integers(0, 12))):
        group = draw(st.sampled_from(sorted(job.groups)))
        members = job.groups[group][1]
        done = draw(st.booleans())
        if draw(st.integers(0, 4)) or len(members) < 2:
            op = draw(st.sampled_from(["all_reduce", "all_to_all", "broadcast"]))
            came = [rank for rank in members if draw(st.integers(0, 5))]
            job.issue(came, op, group=group, done=done, size=((draw(st.integers(1, 3)),),))
        else:
            source, target = draw(st.permutations(members))[:2]
            sides = draw(st.sampled_from(["both", "send", "recv"]))
            job.send(source, target, group=group, done=done, sides=sides)
    return job, draw(st.lists(st.sampled_from(range(world)), unique=True))


@settings(max_examples=150, deadline=None)
@given(_jobs())
def test_whatever_happened_it_can_be_drawn(made: tuple[Job, list[int]]) -> None:
    job, ranks = made
    examined = _examined(job, ranks)
    picture = examined.picture
    for tables in picture.tables:
        for table in tables:
            shown = [rank for column in table.columns for rank in column.ranks]
            assert len(shown) == len(set(shown)), "nobody stands in two columns"
            assert all(len(step.cells) == len(table.columns) for step in table.steps)
            assert sum(step.here for step in table.steps) == 1
    if picture.graph:
        nodes = [rank for node in picture.graph.nodes for rank in node.ranks]
        assert len(nodes) == len(set(nodes))
        assert set(examined.answer.culprits) <= set(nodes)
    for width in (40, None):
        as_text(examined.answer, picture=picture, width=width)
    as_html(examined.answer, picture=picture)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(_walk_through().content(0)["entries"][0])), st.integers(0, 2), _values)
def test_no_value_in_a_dump_stands_in_the_way_of_the_picture(field: str, place: int, value: object) -> None:
    job = _walk_through()
    job.entries[5][place] = {**job.entries[5][place], field: value}
    examined = _examined(job)
    as_text(examined.answer, picture=examined.picture, width=80)
    as_html(examined.answer, picture=examined.picture)
