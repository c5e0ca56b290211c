"""How does the answer about one rank look to a person?"""

from __future__ import annotations

from collections.abc import Iterator

from train_ledger.ops.rank.records import Collective, GpuNow, RankAnswer, exit_code_of
from train_ledger.render import Report, duration, moment, ranks_in_brief
from train_ledger.render.report import Frames, Section, Tone, commands, pairs, points

__all__ = ["report_of_rank"]

_TONES: dict[int, Tone] = {0: "fine", 1: "trouble", 3: "unsure"}
_SHOWN_VALUES = (
    ("DCGM_FI_DEV_SM_CLOCK", "{:.0f} MHz"),
    ("DCGM_FI_DEV_GPU_UTIL", "{:.0f} % busy"),
    ("DCGM_FI_DEV_POWER_USAGE", "{:.0f} W"),
    ("DCGM_FI_DEV_GPU_TEMP", "{:.0f} °C"),
    ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "{:.0f} uncorrected memory errors"),
)
_MOST_FRAMES = 30


def report_of_rank(answer: RankAnswer) -> Report:
    """What it does, then where it is, what it wrote, where it stands, and what to run next."""
    sections = [
        *pairs("", _place(answer)),
        *_lines("last lines of its signals", answer.lines),
        *_log(answer),
        *_stack(answer),
        *points("not observed", answer.not_observed),
        *commands(answer.next),
    ]
    return Report(answer.verdict, _TONES[exit_code_of(answer)], tuple(sections))


def _place(answer: RankAnswer) -> Iterator[tuple[str, str | None]]:
    where = answer.where
    gpu = [f"index {where.gpu}" if where.gpu is not None else "", where.uuid or "", where.pci or ""]
    yield "run", f"{answer.run}: {answer.state}, attempt {answer.attempt}"
    yield "host", where.host
    yield "GPU", ", ".join(it for it in gpu if it) or None
    yield "rack", where.rack
    yield "switch port", where.switch_port
    yield "process", None if where.pid is None else str(where.pid)
    yield "last step", _step(answer)
    yield "phase", _phase(answer)
    yield "heard last", _when(answer, answer.heard_t)
    yield "raised", answer.exception
    yield "signal", None if answer.signal is None else f"{answer.signal}, {_when(answer, answer.signal_t)}"
    yield "gone since", _when(answer, answer.gone_t)
    yield "collective", _collective(answer, answer.collective)
    yield "hardware", _gpu(answer, answer.gpu)
    if answer.waiting is not None:
        ranks = answer.waiting.ranks
        yield "waits for it", f"{ranks_in_brief(ranks)} ({len(ranks)}), by {answer.waiting.by}"


def _step(answer: RankAnswer) -> str | None:
    if answer.step is None:
        return None
    run = "" if answer.run_step is None else f"; the run's is {answer.run_step}"
    return f"{answer.step}, {_when(answer, answer.step_t)}{run}"


def _phase(answer: RankAnswer) -> str | None:
    if answer.phase is None:
        return None
    since = _when(answer, answer.phase_since_t)
    return f"{answer.phase} since {since}" if since else answer.phase


def _collective(answer: RankAnswer, it: Collective | None) -> str | None:
    if it is None:
        return None
    did = "finished last" if it.done else f"waits in it ({it.state})"
    others = f", with {ranks_in_brief(it.others)}" if it.others else ""
    at = f", at {it.frame}" if it.frame else ""
    taken = f"; by the dump of {_when(answer, it.t)}"
    return f"{it.op} number {it.seq} of group {it.group}{others}: {did}{at}{taken}"


def _gpu(answer: RankAnswer, it: GpuNow | None) -> str | None:
    if it is None:
        return None
    told = [shape.format(it.values[name]) for name, shape in _SHOWN_VALUES if name in it.values]
    read = [f"read {_when(answer, it.seen_t)}"] if it.seen_t is not None else []
    return "; ".join([*it.faults, *read, *told]) or None


def _when(answer: RankAnswer, t: float | None) -> str | None:
    if t is None:
        return None
    apart_s = answer.t - t
    return f"{moment(t)} ({duration(apart_s)} ago)" if apart_s >= 0 else moment(t)


def _log(answer: RankAnswer) -> list[Section]:
    if answer.log is None:
        return []
    return _lines(f"last lines of its log, {answer.log.file}", answer.log.lines)


def _stack(answer: RankAnswer) -> list[Section]:
    it = answer.stack
    if it is None:
        return []
    more = len(it.frames) - _MOST_FRAMES
    frames = (*it.frames[:_MOST_FRAMES], *([f"and {more} more; --json lists all"] if more > 0 else []))
    return _lines(f"its stack of {_when(answer, it.t)}: it {it.what}", frames)


def _lines(heading: str, lines: tuple[str, ...]) -> list[Section]:
    return [Section(heading, (Frames(lines),))] if lines else []
