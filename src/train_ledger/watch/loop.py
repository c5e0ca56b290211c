"""How does a keeper run until somebody ends it?

Takes the lock, serves the page, turns once a second. Beside each turn only the first answers to a page run,
and the recorder of this node's hardware.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from train_ledger.answer import ExitCode, cause_code
from train_ledger.config import Config
from train_ledger.ledger import KeeperLock
from train_ledger.run_dir import RunDir
from train_ledger.watch.console import Console
from train_ledger.watch.hooks import standing_words
from train_ledger.watch.keeper import Keeper
from train_ledger.watch.node_recording import NodeRecording

__all__ = ["watch"]

_LONGEST_TURN_S = 1.0
_NOTHING_ON_PAGE = (
    "a page goes out without a verdict: [respond] on_page is off; --respond, or on_page = "
    '["dump", "stacks", "diagnose"] in train-ledger.toml, takes dumps and stacks and names the cause at once'
)


def watch(
    run_dir: RunDir,
    config: Config,
    *,
    host: str = "127.0.0.1",
    port: int | None = 9467,
    until_verdict: bool = False,
    as_json: bool = False,
    out: Callable[[str], None] = print,
) -> ExitCode:
    """Keep a run until interrupted, or with `until_verdict` until the first verdict or the run's end.

    With `until_verdict` a verdict is asked for, even if nothing else is. `port` None serves no page, 0 takes
    a free one. Raises KeeperHeld where another keeper holds the run, RunDirError where its files cannot be
    used, and OSError where the address is taken.
    """
    console = Console(out, as_json, config.cost.currency)
    if until_verdict and not config.respond.on_page:
        config = replace(config, respond=replace(config.respond, on_page=("diagnose",)))
    with KeeperLock(run_dir.keeper_lock):
        keeper = Keeper(run_dir, config, console)
        if not (config.notify.urls or config.notify.command):
            console.remark("nobody will be told: [notify] in train-ledger.toml names no urls and no command")
        if not config.respond.on_page:
            console.remark(_NOTHING_ON_PAGE)
        for told in standing_words(config):
            console.remark(told)
        recording = NodeRecording(run_dir, config, console.remark)
        try:
            with _page(keeper, host, port, console):
                return _turn_until(keeper, config, until_verdict, recording)
        finally:
            recording.close()
            keeper.close()


def _turn_until(keeper: Keeper, config: Config, until_verdict: bool, recording: NodeRecording) -> ExitCode:
    pause_s = min(_LONGEST_TURN_S, config.alerts.evaluation_interval_s)
    while True:
        started = time.monotonic()
        keeper.turn()
        recording.attend({rank.host for rank in keeper.state.ranks.values()})
        if until_verdict and keeper.is_told:
            return cause_code(keeper.verdict["diagnosis"].get("cause"))
        if until_verdict and keeper.state.finished:
            return ExitCode.NOTHING_WRONG
        time.sleep(max(0.0, pause_s - (time.monotonic() - started)))


@contextlib.contextmanager
def _page(keeper: Keeper, host: str, port: int | None, console: Console) -> Iterator[None]:
    if port is None:
        yield
        return
    from train_ledger.watch.view import serve_view  # a keeper without a page loads no web server

    with serve_view(keeper, host, port, console.remark) as address:
        console.remark(f"web page on {address}")
        yield
