"""Runs made up step by step, with the truth about where their time went.

A run is played on one true clock. Each host's clock is off by a constant, and ranks write what our signals
write; some of them are missing altogether or fall silent. What each second was is written down as it passes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from train_ledger.facts import Event, Fact, Step

START_T = 1_790_000_000.0
STALL_FLOOR_S = 90.0
BLOCKING_S = 0.3
FOR_EVER = 1 << 60


@dataclass(frozen=True)
class AttemptPlan:
    """One attempt; `end` is one of crash, hang (then killed), silent (a power cut), end, goes_on."""

    world_size: int = 4
    start_up_s: float = 30.0
    steps: int = 20
    save: str = "sync"
    save_every: int = 5
    save_s: float = 4.0
    evaluate_every: int = 0
    evaluate_s: float = 20.0
    hang_at: int = 0
    hang_s: float = 400.0
    end: str = "crash"
    end_s: float = 500.0
    gap_s: float = 120.0
    missing: tuple[int, ...] = ()
    fall_silent: tuple[int, ...] = ()


@dataclass(frozen=True)
class Plan:
    attempts: tuple[AttemptPlan, ...]
    step_s: float = 2.0
    skews_s: tuple[float, ...] = (0.0, 0.0, 0.0)


@dataclass
class Made:
    """What was written, in the order of its true times, and the truth in seconds by category.

    `t` is the end of it on the run's clock, `guessed` how many steps had something beside them whose own time
    can be told only by what a step usually takes.
    """

    facts: list[Fact] = field(default_factory=list)
    truth: Counter[str] = field(default_factory=Counter)
    gpu_s: float = 0.0
    began_t: float = START_T
    t: float = START_T
    guessed: int = 0


class Player:
    """Plays a plan, once."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.made = Made()
        self.t = START_T
        self.durable: int | None = None
        self.resumed = 0
        self.pending: list[tuple[float, int]] = []
        self.laps: list[tuple[int, list[tuple[int, float]]]] = []
        self.keyed: list[tuple[float, Fact]] = []

    def play(self) -> Made:
        last = len(self.plan.attempts) - 1
        for number, attempt in enumerate(self.plan.attempts):
            self.number, self.now = number, attempt
            self._attempt()
            self._gap(is_last=number == last)
        self._book()
        made = self.made
        made.facts = [fact for _, fact in sorted(self.keyed, key=lambda it: it[0])]
        off_s = self._off_s(min(it.rank for it in made.facts if it.rank is not None))
        made.t, made.began_t = self.t + off_s + 0.01, START_T + off_s
        return made

    # -- what is written

    @property
    def ranks(self) -> list[int]:
        """Those that write; at least one does."""
        ranks = range(self.now.world_size)
        return [rank for rank in ranks if rank not in self.now.missing] or list(ranks)

    def _says(self, rank: int) -> bool:
        silent = rank in self.now.fall_silent and 2 * len(self.now.fall_silent) < len(self.ranks)
        return not (silent and self.step > self.first + 3)

    def _off_s(self, rank: int) -> float:
        return self.plan.skews_s[(rank // 2) % len(self.plan.skews_s)]

    def _event(
        self, name: str, *, step: int | None = None, t: float | None = None, **details: object
    ) -> None:
        at = self.t if t is None else t
        for rank in filter(self._says, self.ranks):
            off_s, host = self._off_s(rank) + rank * 0.001, f"host{rank // 2}"
            self.keyed.append((at, Event(at + off_s, name, rank, step, self.number, host, "", details)))

    def _complete(self, took_s: float, ckpt_s: float) -> None:
        values = {"loss": 2.0, "step_time_s": took_s} | ({"ckpt_s": ckpt_s} if ckpt_s else {})
        for rank in filter(self._says, self.ranks):
            t, host = self.t + self._off_s(rank) + rank * 0.001, f"host{rank // 2}"
            self.keyed.append((self.t, Step(t, self.step, rank, self.number, host, "", values)))

    def _pass(self, category: str, seconds: float, *, gpus: int | None = None) -> None:
        self.t += seconds
        self.made.truth[category] += seconds
        self.made.gpu_s += seconds * (self.now.world_size if gpus is None else gpus)
        for done in [it for it in self.pending if it[0] <= self.t]:
            self.pending.remove(done)
            told = {"duration_s": self.now.save_s, "blocking_s": BLOCKING_S, "durable": True}
            self._event("ckpt_saved", step=done[1], t=done[0], **told)
            self._is_saved(done[1])

    def _is_saved(self, step: int) -> None:
        self.durable = max(self.durable or 0, step)

    # -- what happens

    def _attempt(self) -> None:
        self.first = self.step = max(self.resumed, self.durable or 0)
        own: list[tuple[int, float]] = []
        self.laps.append((self.first, own))
        self._event("run_start", world_size=self.now.world_size, pid=7, gpu=0)
        if self.first:
            self._event("phase_start", phase="checkpoint_load")
        self._pass("start_up", self.now.start_up_s)
        if self.first:
            self._event("phase_end", phase="checkpoint_load")
            self._event("ckpt_loaded", step=self.first, duration_s=self.now.start_up_s)
        saved_s = 0.0
        self.made.guessed += 3
        for index in range(1, self.now.steps + 1):
            stood_s = self._hang(index)
            took_s = self.plan.step_s * (1 + 0.004 * (index % 3 - 1))
            self._pass("steps", took_s)
            self.step += 1
            own.append((self.step, took_s))
            self._complete(took_s + stood_s + saved_s, saved_s)
            saved_s = self._save(index)
            self._evaluate(index)
        self._end()

    def _hang(self, index: int) -> float:
        if index != self.now.hang_at or index <= 3:
            return 0.0
        stood_s = max(self.now.hang_s, 4 * self.plan.step_s + STALL_FLOOR_S)
        self._pass("stalled", stood_s)
        self.made.guessed += 1
        return stood_s

    def _save(self, index: int) -> float:
        """Save where it is time; how long the training stood for it."""
        plan = self.now
        if not plan.save_every or index % plan.save_every:
            return 0.0
        self.made.guessed += 1
        self._event("ckpt_start", step=self.step)
        self._event("phase_start", phase="checkpoint_save")
        step, stood_s = self.step, BLOCKING_S if plan.save == "async" else plan.save_s
        self._pass("checkpoint", stood_s)
        self._event("phase_end", phase="checkpoint_save")
        if plan.save == "async":
            self.pending.append((self.t + plan.save_s, step))
        elif plan.save == "fails":
            self._event("ckpt_failed", step=step, error="No space left on device")
        else:
            told = {"duration_s": plan.save_s, "blocking_s": plan.save_s, "durable": True}
            self._event("ckpt_saved", step=step, **told)
            self._is_saved(step)
        return stood_s

    def _evaluate(self, index: int) -> None:
        plan = self.now
        if plan.evaluate_every and index % plan.evaluate_every == 0:
            self.made.guessed += 1
            self._event("eval_start")
            self._pass("evaluation", plan.evaluate_s)
            self._event("eval_end")

    @property
    def limit_s(self) -> float:
        return max(STALL_FLOOR_S, 3 * self.plan.step_s)

    @property
    def ends(self) -> str:
        """How the attempt ends; one without a step says it."""
        return "crash" if self.now.end == "silent" and not self.now.steps else self.now.end

    def _end(self) -> None:
        plan, in_start_up = self.now, not self.now.steps
        if self.ends == "end":
            self._event("run_end")
        elif self.ends == "hang":
            self._pass("start_up" if in_start_up else "stalled", max(plan.end_s, self.limit_s + 20))
            self._event("signal", number=15)
        elif self.ends == "crash":
            self._pass("start_up" if in_start_up else "down", self.plan.step_s / 2)
            self._event("exception", type="RuntimeError", message="made")
        if self.ends != "goes_on":
            self.pending.clear()

    def _gap(self, *, is_last: bool) -> None:
        """Until the next attempt, or until the accounts are made."""
        gap_s, is_long = self.now.gap_s, self.now.gap_s > self.limit_s
        if self.ends == "end":
            if not is_last:
                self.resumed = self.step
                self._pass("down", gap_s, gpus=0)
        elif self.ends == "goes_on":
            self._pass("unknown" if self.now.steps else "start_up", self.plan.step_s / 2)
        elif self.ends != "silent":
            self._pass("down", gap_s)
        elif is_last:
            self._pass("stalled" if is_long else "unknown", gap_s)
        else:
            self._pass("unknown" if is_long else "down", gap_s)

    def _book(self) -> None:
        """What each step was worth in the end."""
        truth = self.made.truth
        truth.pop("steps", None)
        is_dead = self.ends in ("crash", "hang") or (self.ends == "goes_on" and not self.now.steps)
        begun = max((base for base, own in self.laps if own), default=0)
        lowest = max(self.durable, begun) if is_dead and self.durable is not None else FOR_EVER
        for base, own in reversed(self.laps):
            for step, took_s in own:
                truth["productive" if step <= lowest else "rework"] += took_s
            if own:
                lowest = min(lowest, base)


def played(plan: Plan) -> Made:
    """The facts of a run and the truth about it."""
    return Player(plan).play()
