"""How does a rank begin to tell of itself?"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from train_ledger.fields import RUN_MEANINGS
from train_ledger.run_dir import RunDir, RunDirError
from train_ledger.signals import family, flight
from train_ledger.signals.asking.worker_server import serve
from train_ledger.signals.audience import invite
from train_ledger.signals.bystander import Bystander
from train_ledger.signals.harmless.bounded import within
from train_ledger.signals.harmless.stderr import Stderr
from train_ledger.signals.harmless.values import detail, whole
from train_ledger.signals.identity import Identity, identify
from train_ledger.signals.monitor import Monitor
from train_ledger.signals.sampling.gpu import gpu_of
from train_ledger.signals.sampling.memory import MemoryCounters
from train_ledger.signals.sampling.throughput import Throughput
from train_ledger.signals.writing.attempt import next_attempt
from train_ledger.signals.writing.rotation import DEFAULT_BYTES, Rotation

__all__ = ["start"]

_PATIENCE_S = 5.0
_TOLD_S = 0.25
_SILENT = -1
_WANTED = (
    "parallelism and model are mappings, rank and world_size whole numbers, and each figure is a positive "
    "number that a float can hold"
)
_current: Monitor | None = None


def start(
    run_dir: str | os.PathLike[str],
    *,
    world_size: int | None = None,
    rank: int | None = None,
    parallelism: Mapping[str, Any] | None = None,
    model: Mapping[str, Any] | None = None,
    worker_server: bool | None = None,
    keep_memory_peaks: bool = False,
    collectives: bool = True,
    rotate_bytes: int = DEFAULT_BYTES,
    rotate_keep: int | None = None,
    tensorboard: bool | str | os.PathLike[str] | None = None,
    wandb: bool | Mapping[str, Any] | None = None,
    **run_json: Any,
) -> Monitor:
    """Begin to write this rank's signals into `run_dir`; call it before `init_process_group`.

    `rank` and `world_size` are taken from the launcher's environment where they are not given. `parallelism`
    is {"dp", "tp", "pp", "cp", "ep", "order"}, `model` {"params", "layers", "heads", "head_dim", "seq_len"};
    both, and every further keyword (`gpu_price_per_hour`, `restart_command`, `peak_flops`, …), go into
    run.json by rank 0. `worker_server` (or TRAIN_LEDGER_WORKER_SERVER=1) starts torch's own server, which can
    dump even while C code holds Python's lock. `keep_memory_peaks` leaves torch's peak counters to the
    training. `collectives=False` leaves the methods of torch's process groups as they are; compute_s and
    comm_wait_s are then not known. The signal file gets its next name at about `rotate_bytes` (0: never), and
    `rotate_keep` older ones are kept (None: all).

    `tensorboard` (a folder, or True for RUN/tensorboard) and `wandb` (what `wandb.init` is given, or True)
    get the numbers of every step, too, of the one rank that has the loss; each by its own library, which runs
    in a process of its own and is waited for only at the end, for ten seconds at most.

    A second call in one process closes the first monitor and counts as a new attempt. In a child of the
    process that speaks for this rank already – a loader's worker that imports the script anew – the monitor
    is silent, and one line on stderr says so.

    Never raises for what the machine does: where the run directory cannot be written one line says so on
    stderr, what is not written is counted, and the training goes on. A figure that is no number is refused
    with one warning.
    """
    global _current
    if _current is not None:
        _current.close()
    place = RunDir(Path(run_dir).absolute())
    me = identify(rank, world_size)
    if isinstance(_current, Bystander) and _current.rank == me.rank:
        return _current
    speaker = family.speaker_of(me.rank, place.signals_of(me.rank))
    if speaker is not None:
        _current = _silent(place, me, speaker)
        return _current
    attempt, ready = _attempt(place, me)
    findings = flight.apply(os.environ, place.comm_traces(attempt) if ready else None)
    gpu = gpu_of(me.local_rank)
    layout, shape = _mapping(parallelism), _mapping(model)
    throughput = Throughput(shape, layout, run_json.get("peak_flops"), gpu.get("gpu_name"), gpu.get("pci"))
    monitor = _current = Monitor(
        place,
        me,
        attempt,
        throughput,
        MemoryCounters(keep_memory_peaks),
        collectives=bool(collectives),
        rotation=_rotation(rotate_bytes, rotate_keep),
    )
    family.leave_mark(me.rank, attempt, place.signals_of(me.rank))
    throughput.warn = monitor.warn
    served = serve(place, me.rank) if _server_wanted(worker_server) else {}
    monitor.open(
        world_size=me.world_size, host=me.host, local_rank=me.local_rank, pid=me.pid, **gpu, **served
    )
    findings += within(_PATIENCE_S, lambda: flight.check(os.environ, me.rank), [])
    for finding in findings:
        if finding.level != "note":
            monitor.warn(finding.about, finding.message)
        if finding.about == "start" and me.rank == 0:  # a slip in the script, which its author should see
            Stderr().say(f"rank 0: {finding.message}")
    refused = throughput.refused + _refused(
        (rank, whole(rank)), (world_size, whole(world_size)), (parallelism, layout), (model, shape)
    )
    if refused:
        monitor.warn(
            "start", f"{', '.join(refused)} given to start() cannot be used and is left out: {_WANTED}"
        )
    _tell_slips(monitor, run_json)
    constants = {
        "world_size": me.world_size,
        "parallelism": layout,
        "model": shape,
        "device": gpu.get("gpu_name"),
        **run_json,
        "peak_flops": throughput.peak,
    }
    if me.rank == 0 and ready and not within(_PATIENCE_S, lambda: _write_run(place, constants), False):
        monitor.warn("run.json", f"{place.run_json} could not be written")
    invite(monitor, tensorboard=tensorboard, wandb=wandb, constants=constants)
    monitor.logger.flush(_TOLD_S)  # who this is stands in the file before anything can lock Python up
    return monitor


def _tell_slips(monitor: Monitor, given: Iterable[str]) -> None:
    """Of keys like `gpu_price_per_hr`: anything may stand in run.json, but nobody reads that one."""
    for key in given:
        if key in RUN_MEANINGS:
            continue
        from difflib import get_close_matches  # here, since `import train_ledger` is to be quick

        for meant in get_close_matches(key, RUN_MEANINGS, n=1, cutoff=0.8):
            monitor.warn(
                "start", f"{key} given to start() is put into run.json, but nobody reads it; {meant}?"
            )


def _rotation(at_bytes: object, keep: object) -> Rotation:
    """As wanted; by what holds without being asked where that is no whole number."""
    size, kept = whole(at_bytes), whole(keep)
    return Rotation(
        DEFAULT_BYTES if size is None else max(0, size), None if kept is None or kept < 0 else kept
    )


def _silent(place: RunDir, me: Identity, speaker: family.Speaker) -> Bystander:
    family.leave_mark(me.rank, speaker.attempt, Path(speaker.file))  # for children of its own
    Stderr().say(
        f"rank {me.rank}: process {me.pid} is a child of process {speaker.pid}, which writes this rank's "
        "signals already; the child's monitor does nothing"
    )
    return Bystander(place, me, speaker.attempt)


def _mapping(given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A copy of what is given; None for what is no mapping."""
    if not issubclass(type(given), Mapping):
        return None
    try:
        return dict(given or {})
    except (TypeError, ValueError, LookupError, AttributeError, RuntimeError):
        return None


def _refused(*given_and_taken: tuple[object, object]) -> list[str]:
    names = ("rank", "world_size", "parallelism", "model")
    return [
        name
        for name, (given, taken) in zip(names, given_and_taken, strict=True)
        if given is not None and taken is None
    ]


def _attempt(place: RunDir, me: Identity) -> tuple[int, bool]:
    """The attempt, and whether the run directory could be prepared within a few seconds."""
    found = within(_PATIENCE_S, lambda: _prepare(place, me), _SILENT)
    if found is not None and found != _SILENT:
        return found, True
    if found == _SILENT:  # a refusal is told by the logger, when it cannot open its file
        Stderr().say(
            f"rank {me.rank}: {place.path} does not answer; the training goes on, "
            "and its signals are dropped and counted until it does"
        )
    return next_attempt(Path(os.devnull)), False


def _prepare(place: RunDir, me: Identity) -> int | None:
    """Make the folders and find the attempt, as slowly as the disk likes; None where that is refused."""
    attempt = next_attempt(place.signals_of(me.rank))
    try:
        for folder in (place.signals, place.requests, place.comm_traces(attempt), place.stacks(attempt)):
            folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return attempt


def _write_run(place: RunDir, constants: Mapping[str, Any]) -> bool:
    """Create run.json or bring it up to date: what others wrote there stays, what is given now counts."""
    first = {"run": place.path.name, "started": time.time()}
    given = {key: detail(value) for key, value in constants.items() if value is not None}
    try:
        place.merge_run({**first, **place.read_run(), **given})
    except RunDirError:
        return False
    return True


def _server_wanted(asked: bool | None) -> bool:
    return os.environ.get("TRAIN_LEDGER_WORKER_SERVER") == "1" if asked is None else asked
