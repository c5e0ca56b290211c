"""What does a report over some days consist of?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from train_ledger.answer import Unreadable
from train_ledger.config import Config
from train_ledger.headway import counted
from train_ledger.ledger import JournalError, journal
from train_ledger.ledger.accounts import Accounts
from train_ledger.ops.account import account
from train_ledger.ops.postmortem.incident import all_incidents
from train_ledger.ops.postmortem.recoveries import with_journal
from train_ledger.ops.weekly.firings import firings_of
from train_ledger.ops.weekly.matters import Matter, matters_of
from train_ledger.run_dir import RunDir, RunDirError

__all__ = ["RunWeek", "Weekly", "weekly"]


@dataclass(frozen=True, slots=True)
class RunWeek:
    """One run's matters and its accounts of that time, without their spans.

    `inhibited` counts firings that others explained. `not_read` says what of the journal is missing.
    """

    run: str
    path: str
    matters: tuple[Matter, ...]
    accounts: Accounts
    inhibited: int = 0
    not_read: tuple[str, ...] = ()

    def of_level(self, level: str) -> tuple[Matter, ...]:
        return tuple(it for it in self.matters if it.level == level)

    @property
    def effective(self) -> float | None:
        """The productive share of the time; None where there was none."""
        wall_s = self.accounts.wall_s
        return self.accounts.seconds.get("productive", 0.0) / wall_s if wall_s > 0 else None

    @property
    def lost_gpu_hours(self) -> float | None:
        hours = self.accounts.gpu_hours
        return None if hours is None else sum(hours.values()) - hours.get("productive", 0.0)

    @property
    def lost_cost(self) -> float | None:
        """What went into no step that counts; None where hours or price are not known."""
        hours, price = self.lost_gpu_hours, self.accounts.price_per_gpu_hour
        return None if hours is None or price is None else hours * price


@dataclass(frozen=True, slots=True)
class Weekly:
    """The report on some runs from `since_t` to `until_t` (unix seconds); and which could not be read."""

    since_t: float
    until_t: float
    runs: tuple[RunWeek, ...]
    unreadable: tuple[Unreadable, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether anything of that time is: somebody kept a whole journal, or a second is accounted for."""
        return any(it.matters or it.effective is not None or not it.not_read for it in self.runs)


def weekly(
    runs: Sequence[tuple[RunDir, Config]],
    since_t: float,
    until_t: float,
    unreadable: Sequence[Unreadable] = (),
) -> Weekly:
    """Read the journals and accounts of the runs; `unreadable` are those that could not even be begun.

    One of several that cannot be read is named, and the others are reported on. For one alone it raises
    RunDirError where run.json or the signals cannot be used, JournalError where the journal cannot be read,
    OSError where the system refuses a file.
    """
    found, unread = [], [*unreadable]
    is_alone = len(runs) + len(unread) == 1
    for run, config in runs if is_alone else counted(runs, "reading runs", "runs"):
        try:
            found.append(_of_run(run, config, since_t, until_t))
        except (OSError, RunDirError, JournalError) as error:
            if is_alone:
                raise
            unread.append(Unreadable(str(run.path), str(error)))
    return Weekly(since_t, until_t, tuple(found), tuple(unread))


def _of_run(run_dir: RunDir, config: Config, since_t: float, until_t: float) -> RunWeek:
    entries, unreadable = journal.read(run_dir.journal)
    found = firings_of(entries)
    inhibited = sum(it.inhibited and it.touches(since_t, until_t) for it in found.firings)
    return RunWeek(
        run=run_dir.name_in(run_dir.read_run()),
        path=str(run_dir.path),
        matters=matters_of(found, since_t, until_t),
        accounts=_accounts(run_dir, config, since_t, until_t),
        inhibited=inhibited,
        not_read=tuple(_not_read(bool(entries), len(unreadable), found.unknown, found.first_t, since_t)),
    )


def _accounts(run_dir: RunDir, config: Config, since_t: float, until_t: float) -> Accounts:
    """That a run stands of which nothing is heard any more is known only while an incident is open."""
    is_open = any(not it.is_closed for it in all_incidents(run_dir))
    own = account(run_dir, config, at=until_t, since=since_t, may_be_abandoned=not is_open)
    return replace(with_journal(own, run_dir), spans=())


def _not_read(
    is_there: bool, unreadable: int, unknown: int, first_t: float | None, since_t: float
) -> Iterable[str]:
    if not is_there:
        yield "no keeper kept a journal of this run, so that no alert of it is known (train-ledger watch RUN)"
    elif first_t is not None and first_t > since_t:
        yield "the journal begins later than the time that is reported on"
    if unreadable:
        yield f"{unreadable} line{'s' * (unreadable > 1)} of the journal could not be read"
    if unknown:
        yield f"{unknown} alert{'s' * (unknown > 1)} in the journal made no sense"
