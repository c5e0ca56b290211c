"""Writes docs/metrics.md from the table of fields and from what an exporter exports.

    python tools/metrics_page.py            write the page
    python tools/metrics_page.py --check    exit status 1 where it is not current

The names that are not fields are asked of a real exporter over a small run made for it, so that the page
cannot name what nobody exports.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from page import DOCS, table, write_or_check

from train_ledger.config import Alerts, Config
from train_ledger.dash.exporter import Exporter
from train_ledger.dash.rules import RULES
from train_ledger.fields import (
    EVENT_MEANINGS,
    FIELDS,
    LOG_EVENT_MEANINGS,
    PHASE_MEANINGS,
    RUN_MEANINGS,
    Field,
)
from train_ledger.run_dir import RunDir

PAGE = DOCS / "metrics.md"

_LAYERS = {
    "task": "Of the task",
    "process": "Of each process",
    "launcher": "What a launcher may write into a line",
}
_HEAD = """# What is measured

<!-- Written by tools/metrics_page.py from src/train_ledger/fields.py; change it there. -->

`RUN/signals/rank_00005.jsonl` holds one JSON object a line and a step. `t` (unix seconds), `step`,
`rank` and `attempt` (0 for the first) are always there, every field below where it is known. What else a
loop or a framework tells (`val_loss`, `epoch`, …) is written under its own name, and exported with
`[limits] unknown_fields = true` alone. A number that is not finite is written as "NaN", "Infinity" or
"-Infinity"; of a tensor nothing is written, and `refused_values` counts it. Exported, a field has `train_`
before its name and the labels `run` and `rank`: `train_loss`. A counter ends in `_total`
(`train_skipped_total`), counts on within an attempt and is exported from 0 on; the others are gauges. At
about 256 MiB (`start(…, rotate_bytes=…, rotate_keep=…)`) the file becomes `rank_00005.jsonl.1`, that one
`.2`, and so on.
"""
_OWN_WORK = """## How a rank's own work is told from its waiting

The step takes equally long on every rank, since each waits for the slowest: the wall cannot say who that
is. `comm_wait_s` is what the training thread, or on CUDA the training stream, spends in collectives –
waiting for the others, and the transfer. `compute_s` is the rest of the step without the phases data,
checkpoint_save, checkpoint_load, evaluation and compile. It holds whatever else the rank does or lets wait:
kernels, gaps in between, garbage collection, logging. The line says how both were found:

| `compute_by` | how | stands in |
|---|---|---|
| `collective_wall` | time by the wall in the calls that block, as gloo's do | the step's own line |
| `cuda_events` | by two CUDA events around each wait | a later line, mostly the next |

Seen are all calls of torch.distributed's functions, by the methods of their process groups (so those of
FSDP2, Megatron, DeepSpeed and pipelines, too), `Work.wait`, futures, what FSDP's training stream waits for
of its other streams, and the reducer of DistributedDataParallel, for models made after `start` or named to
`monitor.watch(model)`. Not seen are functional collectives, as DTensor issues them, the making of a group,
kernels that communicate by themselves, and libraries other than torch.

The process groups number their collectives. Where more were issued in a step, or in the one before it, than
were seen – or one by another thread than calls `monitor.step`, or the accelerator is none of CUDA's, or a
step waits more than a thousand times – both fields are left out of its line, and a warning says so once:
waiting that nobody saw would count as work, and accuse the wrong rank. DistributedDataParallel has none in
its first steps, in which it arranges its buckets. What goes past torch's process groups altogether – a wait
for a key of a store, another library's barrier – is in no such count; there the figures cannot be trusted.
`cuda_events` is held by tests on stand-ins and has not run on a GPU yet.

Frames of the wrappers stand in stacks as `train_ledger/signals/collectives.py`; what `start(…,
collectives=False)` starts wraps nothing.
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    for layer, title in _LAYERS.items():
        rows = [_row(field) for field in FIELDS.values() if field.layer == layer]
        head = ("field", "unit", "where it is taken", "normal", "abnormal", "alert")
        parts.append(f"## {title}\n\n" + table(head, rows))
    parts.append(_OWN_WORK)
    parts.append("## Panels\n\n" + table(("panel", "fields"), _panels()))
    parts.append(
        "## Events\n\nA line with `event` instead of fields.\n\n" + _meanings("event", EVENT_MEANINGS)
    )
    parts.append("## What logs tell besides\n\n" + _meanings("event", LOG_EVENT_MEANINGS))
    parts.append("## Phases\n\n" + _meanings("phase", PHASE_MEANINGS))
    parts.append("## run.json\n\n" + _meanings("key", RUN_MEANINGS))
    known = {field.metric for field in FIELDS.values()}
    others = [(f"`{name}`", *rest) for name, *rest in _exported() if name not in known]
    parts.append("## What else is exported\n\n" + table(("metric", "type", "labels", "means"), others))
    return "\n".join(parts)


def _row(field: Field) -> tuple[str, ...]:
    threshold = field.threshold
    judged = threshold is None or threshold.alert in {rule.name for rule in RULES}
    alert = f"{threshold.alert}: {threshold}{'' if judged else ' (not judged yet)'}" if threshold else ""
    counts = field.kind == "counter"
    unit = ", ".join(part for part in (field.unit, "a counter" if counts else "") if part)
    return (f"`{field.name}`", unit, field.taken_at, field.normal, field.abnormal, alert)


def _panels() -> Iterator[tuple[str, str]]:
    for panel in dict.fromkeys(field.panel for field in FIELDS.values()):
        yield panel, " ".join(f"`{it.name}`" for it in FIELDS.values() if it.panel == panel)


def _meanings(what: str, meanings: Mapping[str, str]) -> str:
    return table((what, "means"), ((f"`{name}`", means) for name, means in meanings.items()))


def _exported() -> list[tuple[str, str, str, str]]:
    """(name, type, labels, help) of every metric that an exporter has for a run with a bit of everything."""
    with tempfile.TemporaryDirectory() as folder:
        run_dir = RunDir(Path(folder, "run"))
        run_dir.signals.mkdir(parents=True)
        now = time.time()
        run_dir.signals_of(0).write_text("".join(json.dumps(line) + "\n" for line in _lines(now)))
        run_dir.signals_of(1).write_text(json.dumps(_started(now, 1)) + "\n")
        for rank in (2, 3, 4):
            run_dir.signals_of(rank).write_text("".join(json.dumps(it) + "\n" for it in _peers(now, rank)))
        run_dir.hardware.mkdir()
        for name, line in _HARDWARE.items():
            (run_dir.hardware / f"node1.{name}").write_text(line.format(now - 60) + "\n")
        exporter = Exporter(run_dir, _SHORT, clock=lambda: now)
        exporter.poll()
        text = exporter.metrics() or ""
        exporter.close()
    helps = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE))
    types = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
    return sorted((name, kind, _labels(text, name), helps[name]) for name, kind in types)


def _labels(text: str, name: str) -> str:
    sample = re.search(rf"^{name}{{(.*)}} ", text, re.MULTILINE)
    return ", ".join(re.findall(r'(\w+)="', sample[1])) if sample else ""


def _lines(now: float) -> Iterator[dict[str, object]]:
    start, step_s = now - 600, 1.0
    yield _started(now, 0)
    for step in range(1, 590):
        t = start + step * step_s
        told = {"grad_norm": 50.0} if step == 400 else {"num_alloc_retries": step, "mem_inactive_split": step}
        yield {"t": t, "step": step, "rank": 0, "loss": 2.0, "step_time_s": step_s, **_WRITTEN, **told}
        if step % 100 == 0:
            yield {"t": t, "step": step, "rank": 0, "event": "ckpt_start"}
            yield {
                "t": t,
                "step": step,
                "rank": 0,
                "event": "ckpt_saved",
                "duration_s": 0.5,
                "blocking_s": 0.5,
            }


def _peers(now: float, rank: int) -> Iterator[dict[str, object]]:
    """Ranks beside which rank 0's own work is long."""
    yield _started(now, rank)
    for step in range(1, 590):
        yield {"t": now - 600 + step, "step": step, "rank": rank, "compute_s": 0.5}


def _started(now: float, rank: int) -> dict[str, object]:
    """All share a GPU."""
    place = {"host": "node1", "gpu": 0, "uuid": "GPU-1", "pci": "0000:3b:00.0", "pid": 0}
    return {"t": now - 600, "rank": rank, "event": "run_start", "world_size": 5, **place}


_HARDWARE = {
    "kern.log": "{} node1 kernel: NVRM: Xid (PCI:0000:3b:00): 63, pid=7, name=python, Row Remapper",
    "jsonl": '{{"t": {}, "host": "node1", "by": "nvml", "not_observed": ["DCGM_FI_DEV_MEMORY_TEMP"]}}',
}
_WRITTEN = {
    **{"effective_fraction": 0.9, "mfu_baseline": 40.0, "span_fwd_bwd_s": 0.7, "mfu": 40.0},
    **{"data_wait_s": 0.0, "compute_s": 0.7, "grad_norm": 1.0},
}
_SHORT = Config(
    alerts=Alerts(
        step_recent_s=60.0,
        step_usual_window_s=240.0,
        step_usual_offset_s=120.0,
        mfu_window_s=300.0,
        data_wait_window_s=300.0,
    )
)
"""Windows that the small run fills."""


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page(), sys.argv[1:]))
