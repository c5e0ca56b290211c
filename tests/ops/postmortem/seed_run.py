"""The example of the seed article, as a run: 1024 GPUs, XID 79 at 02:58:12, back at its step after 67 min.

The article gives its later times by the minute, and not all of them add up: from 03:24, when the checkpoint
was loaded, to 03:41, when steps were as long as before, 17 minutes lie of which it says nothing. The run is
made as the article prints it. Steps are 4.8 s, so that 300 of them are the 24 minutes that it counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from train_ledger.answer import Diagnosis, Impact, RuledOut, to_json
from train_ledger.ledger import Journal
from train_ledger.ledger.notes import Note, write_note
from train_ledger.run_dir import RunDir

__all__ = ["at", "make_run"]

RANKS = (0, 12, 293, 511)
"""Of the 1024 these wrote signals that are kept: enough to know the steps and the clocks."""
HOSTS = {0: "node000", 12: "node001", 293: "node037", 511: "node063"}
STEP_S = 4.8
SAVED, STOOD = 51_000, 51_300
INCIDENT = "20261130T030020Z-TrainingStepStalled"


def at(clock: str) -> float:
    """Unix seconds of a time of that night, UTC."""
    return datetime.fromisoformat(f"2026-11-30T{clock}+00:00").astimezone(UTC).timestamp()


LAST_STEP_T = at("02:58:40")
BACK_T = at("03:41:40")


def make_run(folder: Path) -> RunDir:
    """The run directory as it lies there in the morning."""
    run = RunDir(folder / "run42")
    run.signals.mkdir(parents=True)
    about = {"run": "run42", "world_size": 1024, "device": "H100", "gpu_price_per_hour": 2.5}
    run.run_json.write_text(json.dumps(about))
    run.config_file.write_text("[alerts]\nstall_floor_s = 100\n")
    for rank in RANKS:
        lines = (json.dumps(line) for line in _signals(rank))
        run.signals_of(rank).write_text("\n".join(lines) + "\n")
    _write_kernel_log(run)
    _write_log(run)
    _write_journal(run)
    _write_notes(run)
    return run


def _signals(rank: int) -> Iterator[dict[str, Any]]:
    """Three hours with a save each 300 steps, which costs 45 s, the hang, and the way back."""
    who = {"rank": rank, "host": HOSTS[rank], "world_size": 1024, "gpu": rank % 8, "pid": 1000 + rank}
    yield from _first_attempt(rank, who)
    began_t = at("03:17:00")
    yield {"t": began_t, "event": "run_start", "attempt": 1, **who}
    loaded = {"event": "ckpt_loaded", "step": SAVED, "rank": rank, "attempt": 1, "duration_s": 420.0}
    yield {"t": at("03:24:00"), **loaded}
    for number in range(1, 401):
        yield _step(rank, SAVED + number, BACK_T + number * STEP_S, 1)


def _first_attempt(rank: int, who: dict[str, Any]) -> Iterator[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    t = LAST_STEP_T
    for step in range(STOOD, SAVED - 1800, -1):
        lines.append(_step(rank, step, t, 0))
        t -= STEP_S
        if (step - 1) % 300 == 0:
            saved = {"event": "ckpt_saved", "step": step - 1, "rank": rank, "duration_s": 45.0}
            lines.append({"t": t + STEP_S - 4.7, **saved, "blocking_s": 45.0, "durable": True, "attempt": 0})
            t -= 45.0
    yield {"t": t - 60, "event": "run_start", "attempt": 0, **who}
    yield from reversed(lines)


def _step(rank: int, step: int, t: float, attempt: int) -> dict[str, Any]:
    loss = 2.0 + 1e-5 * (60_000 - step)
    is_after_a_save = attempt == 0 and (step - 1) % 300 == 0
    took = {"step_time_s": STEP_S + (45.0 if is_after_a_save else 0.0)}
    return {"t": t, "step": step, "rank": rank, "attempt": attempt, "loss": loss, **took}


def _write_kernel_log(run: RunDir) -> None:
    run.hardware.mkdir()
    told = "NVRM: Xid (PCI:0000:b3:00): 79, pid=1293, name=python, GPU has fallen off the bus."
    (run.hardware / "node037.kern.log").write_text(f"{at('02:58:12'):.6f} node037 kernel: {told}\n")


def _write_log(run: RunDir) -> None:
    folder = run.logs / "none_1" / "attempt_0" / "12"
    folder.mkdir(parents=True)
    (folder / "stderr.log").write_text(
        "[rank12]:[E1130 03:00:22.120000000 ProcessGroupNCCL.cpp:685] [Rank 12] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=2183441, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
        "Timeout(ms)=100000) ran for 100012 milliseconds before timing out.\n"
    )


def _write_journal(run: RunDir) -> None:
    journal = Journal(run.journal)
    for entry in _entries():
        journal.append(entry)
    journal.close()


def _entries() -> Iterable[dict[str, Any]]:
    own = {"incident": INCIDENT}
    alert = {"alert": "TrainingStepStalled", "level": "page", "inhibited": False}
    stands = "run42: no step completed for 100 s, the last was 51300"
    found = Diagnosis(
        "stalled",
        "hardware.xid",
        ranks=(293,),
        hosts=("node037",),
        since_step=STOOD,
        since_t=LAST_STEP_T,
        impact=Impact(100.0, 28.44, 71.1),
        evidence=("seq 2183441: missing ranks {293}", "node037: XID 79 at 02:58:12"),
        ruled_out=(RuledOut("hang.mismatch", "all who came brought the same"),),
        confidence="high",
    )
    paged = {"kind": "notification_intended", **own, "notification": f"{INCIDENT}-open"}
    yield {"t": at("03:00:20"), "kind": "alert_fired", **own, **alert, "summary": stands}
    yield {"t": at("03:00:20"), "kind": "incident_opened", **own, "alert": "TrainingStepStalled"}
    yield {"t": at("03:00:20"), **paged}
    yield {"t": at("03:00:21"), "kind": "response_started", **own, "living": 1024}
    yield {
        "t": at("03:01:35"),
        "kind": "response_done",
        **own,
        "summary": "1024 dumps and 0 stacks in 73.0 s",
    }
    yield {"t": at("03:01:36"), "kind": "verdict", **own, "place": [0, STOOD], "diagnosis": to_json(found)}
    for clock, state, step in (("03:17:00", "restarting", None), ("03:41:40", "recovering", SAVED + 1)):
        yield {"t": at(clock), "kind": "state_changed", "state": state, "step": step, "attempt": 1}
    over = {"kind": "state_changed", "state": "running", "step": STOOD + 1, "attempt": 1}
    yield {"t": at("04:05:40"), **over}
    yield {"t": at("04:10:40"), "kind": "incident_closed", **own, "alert": "TrainingStepStalled"}


def _write_notes(run: RunDir) -> None:
    for clock, text, decision in (
        ("03:07:00", "dumps collected: missing rank 293, and node037 had XID 79: hardware", False),
        ("03:09:00", "node037 put on the exclusion list, restart triggered", True),
    ):
        write_note(run, Note(at(clock), text, "ada", "login01", at(clock), decision))
