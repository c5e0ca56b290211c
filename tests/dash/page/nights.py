"""Views of an incident with all that is found of it: dumps, stacks, accounts, and the incidents before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dash.page.views import diagnosis, hung, incident
from dash.states import T0
from hang.recorder import Job, dump_of
from train_ledger.answer import Diagnosis, Impact, to_json
from train_ledger.dash.page import PageView
from train_ledger.hang.analysis import examination_of
from train_ledger.hang.dumps.dump_files import Dumps
from train_ledger.hang.stacks.frames import Frame
from train_ledger.hang.stacks.stack_files import RankStack, Thread
from train_ledger.ledger.accounts import CATEGORIES, Accounts
from train_ledger.render import Picture

__all__ = ["EARLIER", "HOSTILE_FRAME", "accounts", "night", "picture_of_mesh"]

EARLIER = "20251124T140000Z-TrainingStepStalled"
HOSTILE_FRAME = "<img src=x onerror=alert('frame')>"


def picture_of_mesh(ranks: int = 8, culprit: int = 5, width: int = 8) -> Picture:
    """Of a job of tensor and data parallel groups whose culprit stands in its loader."""
    job = Job(ranks, frames=False)
    tp = {f"tp_{at}": list(range(at, at + width)) for at in range(0, ranks, width)}
    dp = {f"dp_{at}": list(range(at, ranks, width)) for at in range(width)} if ranks > width else {}
    for name, members in {**tp, **dp}.items():
        job.group(name, members, f"mesh_{name[:2]}")
        job.issue(members, group=name, done=True)
    for name, members in tp.items():
        job.issue([it for it in members if it != culprit], group=name, done=culprit not in members)
    stuck = next(members for members in tp.values() if culprit in members)
    for name, members in dp.items():
        job.issue([it for it in members if it not in stuck], "reduce_scatter", group=name)
    stacks = {rank: _stack(rank, "/opt/torch/distributed_c10d.py", "all_reduce") for rank in range(ranks)}
    stacks[culprit] = _stack(culprit, "/job/train.py", HOSTILE_FRAME)
    dumps = Dumps(tuple(dump_of(job, rank) for rank in range(ranks)))
    return examination_of(dumps, world_size=ranks, stacks=stacks).picture


def _stack(rank: int, file: str, function: str) -> RankStack:
    below = [Frame("/job/train.py", line, f"step_{line}") for line in range(60)]
    return RankStack(rank, None, None, (Thread("MainThread", True, (Frame(file, 7, function), *below)),))


def accounts(ranks: int = 8, **others: Any) -> Accounts:
    """Of ten hours, a tenth of which the run stood."""
    seconds = {**dict.fromkeys(CATEGORIES, 0.0), "productive": 32_400.0, "stalled": 3000.0, "start_up": 600.0}
    hours = {name: of_one * ranks / 3600 for name, of_one in seconds.items()}
    told = Accounts(
        "r42",
        T0 - 31_000.0,
        T0 + 5000.0,
        seconds,
        gpu_hours=hours,
        world_size=ranks,
        price_per_gpu_hour=2.5,
        effective={"1h": 0.85, "24h": None, "run": 0.9},
    )
    return replace(told, **others)


def night(ranks: int = 8, culprit: int = 5, *, picture: Picture | None = None) -> PageView:
    """The run that hangs, with dumps, stacks, accounts and an incident that is over."""
    view = hung(ranks, culprit)
    drawn = picture_of_mesh(ranks, culprit) if picture is None else picture
    of_incidents = (*_earlier(), *_answers(incident().id, ranks, culprit))
    losses = {EARLIER: Impact(600.0, ranks / 6, ranks / 6 * 2.5)}
    return replace(
        view,
        picture=drawn,
        accounts=accounts(ranks),
        of_incidents=of_incidents,
        losses=losses,
        run_path="runs/r42",
    )


def _earlier() -> tuple[Mapping[str, Any], ...]:
    found = Diagnosis("stalled", "hang.fabric", confidence="medium")
    return (
        {"t": T0 - 900.0, "kind": "incident_opened", "incident": EARLIER, "alert": "TrainingStepStalled"},
        {"t": T0 - 880.0, "kind": "verdict", "incident": EARLIER, "diagnosis": to_json(found)},
        {"t": T0 - 300.0, "kind": "incident_closed", "incident": EARLIER, "alert": ""},
    )


def _answers(name: str, ranks: int, culprit: int) -> tuple[Mapping[str, Any], ...]:
    wanted = ["dump", "stacks", "diagnose"]
    found = to_json(diagnosis(ranks, culprit))
    return (
        {"t": T0 + 4990, "kind": "incident_opened", "incident": name, "alert": "TrainingStepStalled"},
        {"t": T0 + 4990, "kind": "response_started", "incident": name, "living": ranks, "on_page": wanted},
        {
            "t": T0 + 4998,
            "kind": "response_done",
            "incident": name,
            "summary": f"{ranks} dumps and {ranks} stacks in 7.9 s",
            "dumps": ranks,
            "stacks": ranks,
            "missing": [],
        },
        {"t": T0 + 4999, "kind": "verdict", "incident": name, "place": [0, 51300], "diagnosis": found},
    )
