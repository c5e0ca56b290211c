"""A page of every verb whose answer a person keeps, made by the command as it is typed.

Each is of a run whose folder's name is an attack: it stands in every title and in every command.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from cli.test_account import _line
from cli.test_hang import _dump, _stack
from cli.test_report import DAY_S, T, _entry
from ledger.accounts.made import AttemptPlan, Plan, played
from ops.postmortem.seed_run import make_run
from slow.trace.test_memory_snapshot import block, segment
from slow.trace.traces import copy, kernel, launch, step, write
from train_ledger.chaos import fleet
from train_ledger.cli import app
from train_ledger.facts import Event, Step
from train_ledger.ledger import Journal
from train_ledger.run_dir import RunDir

ATTACK = "r42 <img src=x onerror=alert(1)>&\"'"
ABOUT = {"run": ATTACK, "world_size": 4, "device": "H100", "gpu_price_per_hour": 2.0}


@dataclass(frozen=True, slots=True)
class Asked:
    """What is typed behind `train-ledger`, and which exit status is right."""

    words: tuple[object, ...]
    status: int = 0


def written(folder: Path, verb: str, *more: str) -> Path:
    """The page of a verb in a folder of its own."""
    place = folder / verb.replace(" ", "_")
    (place / ATTACK).mkdir(parents=True)
    asked = MAKERS[verb](place / ATTACK)
    page = place / "page.html"
    wanted = [*verb.split(), *map(str, asked.words), *more, "--html", str(page)]
    ended = CliRunner().invoke(app, wanted, catch_exceptions=False)
    assert ended.exit_code == asked.status, ended.output
    return page


def _hang(run: Path) -> Asked:
    for rank in range(3):
        _dump(run / "comm_traces", rank, 5, pending=True)
    _dump(run / "comm_traces", 3, 4, pending=False)
    _stack(run / "stacks", 3)
    (run / "run.json").write_text(json.dumps(ABOUT))
    return Asked((run / "comm_traces", "--stacks", run / "stacks"), 1)


def _fleet(run: Path, **plan: Any) -> fleet.Fleet:
    run.rmdir()
    return fleet.write(run, **plan)


def _diagnose(run: Path) -> Asked:
    made = _fleet(run, fault="hang", culprit=3, ranks_per_host=2)
    return Asked((run, "--at", made.t), 1)


def _slow(run: Path) -> Asked:
    made = _fleet(run, fault="slow_rank", culprit=5, hosts=2, ranks_per_host=4, steps=200)
    return Asked((run, "--at", made.t), 1)


def _coverage(run: Path) -> Asked:
    made = _fleet(run, hosts=1, ranks_per_host=2)
    return Asked((run, "--at", made.t + 1), 1)


def _backtest(run: Path) -> Asked:
    _fleet(run, hosts=1, ranks_per_host=2, fault="hang", steps=60)
    return Asked((run, "--set", "stall_floor_s=60"))


def _trace(path: Path, rank: int, compute_us: float = 60.0) -> None:
    """Seven steps of computing, copying and waiting, of which a rank may compute longer."""
    events = []
    for number in range(7):
        begin = 100.0 * number
        events += [step(number, begin, begin + 100), launch(begin + 1, begin + 2, number)]
        events.append(kernel(begin + 5, begin + 5 + compute_us + number % 2, correlation=number))
        events.append(copy(begin + 92, begin + 96, correlation=number))
    write(path, *events, rank=rank, world_size=4)


def _breakdown(run: Path) -> Asked:
    for rank in range(4):
        _trace(run / f"rank{rank}.json", rank, 60.0 + 5 * rank)
    return Asked((run,))


def _diff(run: Path) -> Asked:
    _trace(run / "old.json", 0)
    _trace(run / "new.json", 0, 80.0)
    return Asked((run / "old.json", run / "new.json"))


def _memory(run: Path) -> Asked:
    pieces = [block(1000, "active_allocated", 8, asked_mib=900), block(600, "inactive")]
    segments = [segment(*pieces, block(4, "active_pending_free")), segment(block(200, "inactive"))]
    (run / "rank_0.pickle").write_bytes(pickle.dumps({"segments": segments, "device_traces": []}))
    return Asked((run / "rank_0.pickle",))


def _preflight(run: Path) -> Asked:
    (run / "run.json").write_text(json.dumps(ABOUT))
    return Asked((run, "--only", "roster,configuration"), 1)


def _postmortem(run: Path) -> Asked:
    return Asked((make_run(run).path,))


def _account(run: Path) -> Asked:
    attempts = (AttemptPlan(steps=18, evaluate_every=8, gap_s=300), AttemptPlan(end="goes_on", hang_at=12))
    played_run = played(Plan(attempts, 4.0))
    run_dir = RunDir(run)
    run_dir.signals.mkdir()
    run_dir.run_json.write_text(json.dumps(ABOUT))
    lines: dict[int, list[str]] = {}
    for fact in played_run.facts:
        if isinstance(fact, Step | Event) and fact.rank is not None:
            lines.setdefault(fact.rank, []).append(_line(fact))
    for rank, told in lines.items():
        run_dir.signals_of(rank).write_text("\n".join(told) + "\n")
    return Asked((run, "--at", played_run.t))


def _report(run: Path) -> Asked:
    asked = _account(run)
    journal = Journal(run / "ledger" / "journal.jsonl")
    for hour in (3, 9):
        journal.append(_entry("fired", "GpuClockLow", T + hour * 3600, host=ATTACK, gpu="3", rank="3"))
    journal.append(_entry("fired", "TrainingStepStalled", T + 36_300, "page"))
    journal.close()
    assert asked.words[0] == run
    return Asked((run, "--since", "1d", "--at", T + DAY_S))


MAKERS: Mapping[str, Callable[[Path], Asked]] = {
    "hang": _hang,
    "diagnose": _diagnose,
    "slow": _slow,
    "trace breakdown": _breakdown,
    "trace diff": _diff,
    "trace memory": _memory,
    "preflight": _preflight,
    "postmortem": _postmortem,
    "account": _account,
    "cost": lambda run: Asked(_account(run).words),
    "report": _report,
    "coverage": _coverage,
    "backtest": _backtest,
}
"""By verb: what is laid into the run's folder, and what is asked then."""
