"""Why did a rank leave no dump?

By its own log lines and start-up warnings: it was written elsewhere, could not be written, was switched off,
was cut short by the end of the process, or was never asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from signal import SIGKILL

from train_ledger.hang import RankKnowledge
from train_ledger.render import harmless
from train_ledger.sources import Said

__all__ = ["reason_of"]

_OFF = ("0", "false", "False", "FALSE", "n", "no", "off")


def reason_of(
    said: Sequence[Said], rank: RankKnowledge, *, others_were_asked: bool, settings: Mapping[str, str]
) -> str | None:
    """The reason in words; None where nothing says it.

    `said` are the rank's own statements, `settings` what variables were set to by any rank's lines (they are
    the same for a job), which `said` goes before.
    """
    values = {**settings, **_settings(said)}
    kinds: dict[str, Said] = {it.kind: it for it in said}
    return (
        _by_the_file(kinds)
        or _by_settings(values)
        or _by_its_end(kinds, rank)
        or _by_asking(kinds, rank, others_were_asked=others_were_asked)
    )


def _settings(said: Sequence[Said]) -> dict[str, str]:
    pairs = (it.text.partition("=") for it in said if it.kind == "setting" and it.text)
    return {name: value for name, _, value in pairs}


def _by_the_file(kinds: Mapping[str, Said]) -> str | None:
    done = kinds.get("dump_done")
    if done and done.text:
        return f"by the log it was written to {_path(done.text)}: fetch it from its host"
    if failed := kinds.get("dump_failed"):
        where = _path(failed.text or "the file")
        return f"by the log {where} could not be written: no such folder, no right to, or no room"
    return "by the log it was written, but not where" if done else None


def _by_settings(values: Mapping[str, str]) -> str | None:
    if values.get("TORCH_NCCL_DUMP_ON_TIMEOUT") in _OFF:
        return "TORCH_NCCL_DUMP_ON_TIMEOUT is off, so no timeout leaves a dump"
    buffer = values.get("TORCH_FR_BUFFER_SIZE", values.get("TORCH_NCCL_TRACE_BUFFER_SIZE"))
    if buffer == "0":
        return "the Flight Recorder is off (TORCH_FR_BUFFER_SIZE=0)"
    if values.get("TORCH_NCCL_ENABLE_MONITORING") in _OFF:
        return "TORCH_NCCL_ENABLE_MONITORING is off, and it is the monitor that writes the dump"
    handling = values.get("TORCH_NCCL_ASYNC_ERROR_HANDLING", values.get("NCCL_ASYNC_ERROR_HANDLING"))
    if handling == "1":
        return "TORCH_NCCL_ASYNC_ERROR_HANDLING=1 ends the process before the dump is written: set 3"
    return None


def _by_its_end(kinds: Mapping[str, Said], rank: RankKnowledge) -> str | None:
    if rank.no_memory:
        return "the kernel killed the process for want of memory"
    if rank.signal == SIGKILL:
        return "the process was killed (SIGKILL)" + (" while it dumped" if "dump_begun" in kinds else "")
    if "stuck" in kinds:
        return "the watchdog was stuck itself, as in a CUDA call that hangs"
    if "dump_slow" in kinds:
        return "the dump took longer than TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC allows"
    if "no_gil" in kinds:
        return "the interpreter's lock was not to be had, which a dump with stacks needs"
    return None


def _by_asking(kinds: Mapping[str, Said], rank: RankKnowledge, *, others_were_asked: bool) -> str | None:
    if "dump_begun" in kinds:
        return "by the log it was begun: look where TORCH_FR_DUMP_TEMP_FILE points on the rank's host"
    if "store_gone" in kinds:
        return "the store was gone (is rank 0 dead?), so that no rank could hear that a dump was wanted"
    if "dump_asked" in kinds:
        return "by the log it was asked for, and not begun"
    if rank.exception:
        return "the rank raised before a dump was asked for"
    if others_were_asked and rank.has_log:
        return "the log says nothing of it, though others were asked: the rank did not look at the store"
    return None


def _path(text: str) -> str:
    return harmless(text, longest=200)
