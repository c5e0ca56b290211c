"""`train-ledger export`: what does Prometheus read of a run on this node?"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from train_ledger.answer import ExitCode
from train_ledger.cli.leave import BadInputError
from train_ledger.cli.options import Run, seconds

if TYPE_CHECKING:
    from train_ledger.config import Config
    from train_ledger.dash.exporter import Exporter
    from train_ledger.run_dir import RunDir
    from train_ledger.watch.record_hardware import HardwareRecorder

__all__ = ["export"]


def export(
    run: Run,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to serve at; 0.0.0.0 for all.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="PORT", help="Its port; 0 takes a free one.")
    ] = 9466,
    all_hosts: Annotated[
        bool, typer.Option("--all-hosts", help="Ranks of all hosts, not only of this one.")
    ] = False,
    every_s: Annotated[
        float,
        typer.Option(parser=seconds, metavar="SECONDS", help="Seconds between two looks at the files."),
    ] = 1.0,
    state: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="File that keeps what is known for the exporter that comes after this one; 'none' for none.",
            show_default="in the user's own state folder",
        ),
    ] = "",
    record_hardware: Annotated[
        bool,
        typer.Option(
            "--record-hardware",
            help="Write what this node's GPUs, network ports and kernel say into hardware/ of the run.",
        ),
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="Print the metrics once and end.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Say where it serves (with --once: the metrics) as JSON.")
    ] = False,
) -> int:
    """Export this host's ranks to Prometheus.

    Follows the signal files of the run, or its logs where there are none, and serves /metrics and /healthz
    until it is ended. Writes nothing into the run but, with --record-hardware, what the hardware says. An
    exporter that is started anew goes on counting where the last one stopped; where nothing was kept, as of
    logs, large files are read at their ends only, and it says so.

    \b
    Example:
      train-ledger export runs/r42
      train-ledger export runs/r42 --record-hardware
      train-ledger export runs/r42 --once
      train-ledger export runs/r42 --state /var/lib/train-ledger/r42.memory
    """

    from train_ledger import config
    from train_ledger.run_dir import RunDir

    run_dir = RunDir.existing(run)
    settings = config.load(run_dir)
    if once and record_hardware:
        raise BadInputError("--record-hardware records while it serves; leave out --once")
    from train_ledger.dash.exporter import Exporter

    hosts = None if all_hosts else [socket.gethostname()]
    exporter = Exporter(run_dir, settings, hosts, memory=_memory(state, run_dir, hosts))
    try:
        if once:
            _print_once(exporter, json)
        else:
            with _recording(run_dir, settings) if record_hardware else nullcontext() as recorder:
                _serve(exporter, recorder, host, port, every_s, json)
    finally:
        exporter.close()
    return ExitCode.NOTHING_WRONG


def _memory(state: str, run_dir: RunDir, hosts: list[str] | None) -> Path | None:
    from train_ledger.cli.leave import complain
    from train_ledger.ledger import state_path

    if state:
        return None if state == "none" else Path(state)
    users = state_path(run_dir.path, hosts, socket.gethostname())
    if users is None:
        complain("you have no home folder, so nothing is kept for the next exporter; say where with --state")
    return users


@contextmanager
def _recording(run_dir: RunDir, settings: Config) -> Iterator[HardwareRecorder]:
    """A recorder of this node's hardware while the context lasts."""
    from train_ledger.watch.record_hardware import HardwareRecorder

    recorder = HardwareRecorder(run_dir, settings)
    recorder.start()
    try:
        yield recorder
    finally:
        recorder.close()


def _tell(teller: Exporter | HardwareRecorder | None) -> None:
    from train_ledger.cli.leave import complain

    for remark in teller.remarks() if teller else ():
        complain(remark)


def _print_once(exporter: Exporter, json: bool) -> None:
    from train_ledger.cli.output import show
    from train_ledger.render import as_json, harmless

    while not exporter.poll():
        pass  # a large backlog is read in pieces
    _tell(exporter)
    metrics = exporter.metrics() or ""
    if json:
        show(as_json({"run": exporter.state.run, "metrics": metrics}))
    else:  # a label may hold what a terminal would obey
        show("".join(f"{harmless(line, longest=len(line))}\n" for line in metrics.split("\n")[:-1]))


def _serve(
    exporter: Exporter, recorder: HardwareRecorder | None, host: str, port: int, every_s: float, json: bool
) -> None:
    from train_ledger.cli.output import show
    from train_ledger.render import as_json, harmless

    with exporter.serve(host, port) as url:
        address = f"{url}/metrics"
        run = exporter.state.run
        told = f"serving {harmless(run, longest=200)} at {address}"
        show(as_json({"run": run, "url": address}, indent=None) if json else told)
        try:
            while True:
                wait_s = every_s if exporter.poll() else 0.0
                exporter.keep_if_due()
                _tell(exporter)
                _tell(recorder)
                time.sleep(wait_s)
        finally:
            exporter.keep()
            _tell(exporter)
