"""How do keepers run until somebody ends them?

Takes the lock of each run, serves the page of all, turns once a second. Beside each turn only the first
answers to a page run, and the recorder of this node's hardware.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from train_ledger.answer import ExitCode, cause_code
from train_ledger.config import Config
from train_ledger.ledger import JournalError, KeeperLock
from train_ledger.ops.prometheus import FollowedRun
from train_ledger.run_dir import RunDir, RunDirError
from train_ledger.watch.by_series import SeriesKeeper
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
    *runs: tuple[RunDir, Config],
    host: str = "127.0.0.1",
    port: int | None = 9467,
    until_verdict: bool = False,
    as_json: bool = False,
    out: Callable[[str], None] = print,
    followed: FollowedRun | None = None,
) -> ExitCode:
    """Keep runs until interrupted, or with `until_verdict` until the first verdict or all runs' end.

    With `until_verdict` a verdict is asked for, even if nothing else is. `port` None serves no page, 0 takes
    a free one. Of several runs each line says of which it is. A run that cannot be read any more is said not
    to be, and tried again. `followed` is what a Prometheus tells of the one run, whose directory
    then holds the journal alone. Where another run comes to lie in the place of one, all is begun anew.
    Raises KeeperHeld where another keeper holds a run, RunDirError where its files cannot be used, and
    OSError where the address is taken.
    """
    may_end = len(runs) == 1
    while True:
        with contextlib.suppress(_Replaced):
            return _watched(runs, host, port, until_verdict, as_json, out, followed, may_end)
        may_end = False  # the files of the run that lies there now may still be coming


class _Replaced(Exception):  # noqa: N818  (it is no error: what was kept lies there no longer)
    """Another folder lies in the place of a run that is kept."""


def _watched(
    runs: Sequence[tuple[RunDir, Config]],
    host: str,
    port: int | None,
    until_verdict: bool,
    as_json: bool,
    out: Callable[[str], None],
    followed: FollowedRun | None,
    may_end: bool,
) -> ExitCode:
    with contextlib.ExitStack() as stack:
        kept = [
            stack.enter_context(
                _kept(run_dir, config, until_verdict, _console(run_dir, config, runs, as_json, out), followed)
            )
            for run_dir, config in runs
        ]
        stack.enter_context(_page(kept, host, port))
        interval_s = min(config.alerts.evaluation_interval_s for _, config in runs)
        return _turn_until(kept, until_verdict, interval_s, may_end)


@dataclass(frozen=True, slots=True)
class _Kept:
    """One run that is kept; `troubles` are those that kept it from being read and were said."""

    keeper: Keeper
    recording: NodeRecording
    console: Console
    lock: KeeperLock
    troubles: set[str] = field(default_factory=set)

    def turn(self) -> None:
        """One look. Raises what the keeper's turn does, OSError, and _Replaced."""
        if self.lock.is_lost and _is_begun(self.keeper.run_dir):
            self.console.remark(f"{self.keeper.run_dir.path}: another run lies there now; it is begun anew")
            raise _Replaced
        self.keeper.turn()
        self.recording.attend({rank.host for rank in self.keeper.state.ranks.values()})
        if self.troubles:
            self.troubles.clear()
            self.console.remark("the run can be read again")

    def note(self, trouble: str) -> None:
        """The run is as it was seen last, and it is said once why no more is known of it."""
        state = self.keeper.state
        since_t = state.t if state.unreadable_since_t is None else state.unreadable_since_t
        self.keeper.state = replace(state, unreadable=trouble, unreadable_since_t=since_t)
        if trouble not in self.troubles:
            self.troubles.add(trouble)
            self.console.remark(f"cannot be read: {trouble}; it is tried again every turn")


def _is_begun(run_dir: RunDir) -> bool:
    """Whether anybody has written of a run there: of one that was removed what is known is still told."""
    begun = (run_dir.run_json, run_dir.signals, run_dir.logs, run_dir.structured_logs)
    return any(path.exists() for path in begun)


def _console(
    run_dir: RunDir,
    config: Config,
    runs: Sequence[tuple[RunDir, Config]],
    as_json: bool,
    out: Callable[[str], None],
) -> Console:
    """Of several runs each line says of which it is; the journal's own entries do so for scripts."""
    if len(runs) == 1:
        return Console(out, as_json, config.cost.currency)
    name = run_dir.path.name
    said = (lambda text: out(_of_run(name, text))) if as_json else (lambda text: out(_marked(name, text)))
    return Console(said, as_json, config.cost.currency)


def _marked(name: str, text: str) -> str:
    return "\n".join(f"{name}  {line}" if line else "" for line in text.split("\n"))


def _of_run(name: str, text: str) -> str:
    return json.dumps({"run": name, **json.loads(text)})


@contextlib.contextmanager
def _kept(
    run_dir: RunDir, config: Config, until_verdict: bool, console: Console, followed: FollowedRun | None
) -> Iterator[_Kept]:
    if followed is not None or (until_verdict and not config.respond.on_page):
        config = replace(config, respond=replace(config.respond, on_page=("diagnose",)))
    with contextlib.ExitStack() as stack:
        lock = stack.enter_context(KeeperLock(run_dir.keeper_lock))
        keeper = stack.enter_context(contextlib.closing(_keeper(run_dir, config, console, followed)))
        _say_how_it_stands(config, console)
        recording = NodeRecording(run_dir, config, console.remark)
        stack.enter_context(contextlib.closing(recording))
        yield _Kept(keeper, recording, console, lock)


def _keeper(run_dir: RunDir, config: Config, console: Console, followed: FollowedRun | None) -> Keeper:
    if followed is None:
        return Keeper(run_dir, config, console)
    return SeriesKeeper(run_dir, config, console, followed)


def _say_how_it_stands(config: Config, console: Console) -> None:
    if not (config.notify.urls or config.notify.command):
        console.remark("nobody will be told: [notify] in train-ledger.toml names no urls and no command")
    if not config.respond.on_page:
        console.remark(_NOTHING_ON_PAGE)
    for told in standing_words(config):
        console.remark(told)


def _turn_until(kept: Sequence[_Kept], until_verdict: bool, interval_s: float, may_end: bool) -> ExitCode:
    pause_s = min(_LONGEST_TURN_S, interval_s)
    while True:
        started = time.monotonic()
        for it in kept:
            _turn(it, may_end)
            if until_verdict and it.keeper.is_told:
                return cause_code(it.keeper.verdict["diagnosis"].get("cause"))
        if until_verdict and all(it.keeper.state.finished for it in kept):
            return ExitCode.NOTHING_WRONG
        may_end = may_end and until_verdict
        time.sleep(max(0.0, pause_s - (time.monotonic() - started)))


def _turn(it: _Kept, may_end: bool) -> None:
    """Of several runs one that cannot be read takes no other along.

    Of one alone that is the end at its first turn, to whoever typed a wrong name, and for who waits for a
    verdict; later it is a file server that does not answer for a while, and the run must not go unwatched.
    """
    try:
        it.turn()
    except (OSError, JournalError, RunDirError) as error:
        if may_end:
            raise
        it.note(str(error))


@contextlib.contextmanager
def _page(kept: Sequence[_Kept], host: str, port: int | None) -> Iterator[None]:
    if port is None:
        yield
        return
    from train_ledger.watch.view import serve_view  # a keeper without a page loads no web server

    keepers, remarks = [it.keeper for it in kept], [it.console.remark for it in kept]
    with serve_view(keepers, host, port, remarks) as address:
        kept[0].console.remark(f"web page on {address}")
        yield
