"""A run that tells everything, on two hosts, and what dcgm-exporter and node_exporter would say of them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from train_ledger.dash.deploy import COUNTERS
from train_ledger.fields import FIELDS
from train_ledger.run_dir import RunDir

HOSTS = ("node000", "node001")
RANKS_PER_HOST = 2
STEP_S = 10.0
SAVES = range(100, 900, 100)


def uuid_of(host: str, gpu: int) -> str:
    return f"GPU-{host}-{gpu}"


def ranks() -> Iterator[tuple[int, str, int]]:
    """(rank, host, gpu)."""
    for place, host in enumerate(HOSTS):
        for gpu in range(RANKS_PER_HOST):
            yield place * RANKS_PER_HOST + gpu, host, gpu


def step_line(t: float, rank: int, step: int, **others: object) -> dict[str, object]:
    """Every field that there is, and torchtitan's spans; rank 3 works longer than its peers."""
    figures = {name: float(step) if field.kind == "counter" else 1.0 for name, field in FIELDS.items()}
    own_s = 8.0 if rank == 3 else 5.0
    times = {"step_time_s": STEP_S, "compute_s": own_s, "comm_wait_s": 8.5 - own_s, "data_wait_s": 1.0}
    rest = {"ckpt_s": 0.0, "gc_s": 0.0, "log_s": 0.0, "mem_inactive_split": step * 1e6}
    spans = {f"span_{name}_s": 0.5 for name in ("fwd_bwd", "optim", "fetching_batch")}
    launcher = {"effective_fraction": 0.9, "restart_total": 1.0, "ckpt_failed_total": 0.0}
    mine = {"t": t, "step": step, "rank": rank, "attempt": 1}
    return {**figures, **times, **rest, **spans, **launcher, **others, **mine}


def append(run_dir: RunDir, rank: int, *lines: dict[str, object]) -> None:
    with run_dir.signals_of(rank).open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def write_history(run_dir: RunDir, now: float, steps: int = 900) -> int:
    """Two attempts, saves, a step without a finite loss; an XID in the kernel's log. The last step."""
    run_dir.signals.mkdir(parents=True)
    run_dir.run_json.write_text(json.dumps({"run": run_dir.path.name, "world_size": len([*ranks()])}))
    began = now - steps * STEP_S
    for rank, host, gpu in ranks():
        who = {"host": host, "gpu": gpu, "uuid": uuid_of(host, gpu), "pci": f"0000:{gpu + 1}b:00", "pid": 0}
        event = {"rank": rank, "world_size": len([*ranks()]), **who}
        append(run_dir, rank, {"t": began - 60, "event": "run_start", "attempt": 0, **event})
        append(run_dir, rank, {"t": began, "event": "run_start", "attempt": 1, **event})
        append(run_dir, rank, *_attempt(began, rank, steps))
    write_hardware(run_dir, now)
    return steps


def _attempt(began: float, rank: int, steps: int) -> Iterator[dict[str, object]]:
    odd: dict[int, dict[str, object]] = {steps - 5: {"loss": "NaN"}, steps - 20: {"grad_norm": 50.0}}
    for step in range(1, steps + 1):
        t = began + step * STEP_S
        yield step_line(t, rank, step, **odd.get(step, {}))
        if step in SAVES:
            said = {"t": t, "step": step, "rank": rank, "attempt": 1}
            yield {**said, "event": "ckpt_start"}
            yield {**said, "event": "ckpt_saved", "duration_s": 0.5, "blocking_s": 0.5, "durable": True}


def write_hardware(run_dir: RunDir, now: float) -> None:
    run_dir.hardware.mkdir()
    for host in HOSTS:
        said = "kernel: NVRM: Xid (PCI:0000:1b:00): 79, pid=7, GPU has fallen off the bus."
        (run_dir.hardware / f"{host}.kern.log").write_text(f"{now - 30:.6f} {host} {said}\n")
        lacks = {"t": now - 30, "host": host, "by": "nvml", "not_observed": ["DCGM_FI_PROF_SM_ACTIVE"]}
        (run_dir.hardware / f"{host}.jsonl").write_text(json.dumps(lacks) + "\n")


def left_behind_text(run: str) -> str:
    """What an exporter still says on a node that the run left when it was started again."""
    told = (
        ("train_exporter_clock_seconds", "", time.time()),
        ("train_restart_total", "", 0),
        ("train_rank_info", ',rank="0",host="left",gpu="0",uuid="GPU-left"', 1),
        ("train_process_up", ',rank="0"', 1),
        ("train_tps", ',rank="0"', 1),
        ("train_fwd_s", ',rank="0"', 0.5),
    )
    return "".join(f'{name}{{run="{run}"{labels}}} {value}\n' for name, labels, value in told)


def dcgm_text(host: str, label: str = "Hostname") -> str:
    """What dcgm-exporter says of a node with our counters; `label` is by what it calls the host."""
    parts = []
    for counter in COUNTERS:
        if counter.since:
            continue
        parts.append(f"# HELP {counter.field} {counter.help}\n# TYPE {counter.field} {counter.kind}\n")
        more = {
            "DCGM_EXP_XID_ERRORS_COUNT": 'xid="79"',
            "DCGM_EXP_CLOCK_EVENTS_COUNT": 'clock_event="power_cap"',
        }
        for gpu in range(RANKS_PER_HOST):
            labels = [
                f'gpu="{gpu}"',
                f'UUID="{uuid_of(host, gpu)}"',
                f'device="nvidia{gpu}"',
                'modelName="NVIDIA H100 80GB HBM3"',
                f'{label}="{host}"',
                *([more[counter.field]] if counter.field in more else []),
            ]
            parts.append(f"{counter.field}{{{','.join(labels)}}} {time.time() % 7:.3f}\n")
    return "".join(parts)


def node_text() -> str:
    """What node_exporter says: ports of a network card, and much that nobody asks for here."""
    counted = (
        "port_errors_received_total",
        "port_discards_transmitted_total",
        "link_downed_total",
        "symbol_error_total",
        "link_error_recovery_total",
    )
    ports = "".join(
        f'# TYPE node_infiniband_{name} counter\nnode_infiniband_{name}{{device="mlx5_0",port="1"}} 3\n'
        for name in counted
    )
    return f'{ports}node_scrape_collector_success{{collector="infiniband"}} 1\nnode_load1 0.5\n'
