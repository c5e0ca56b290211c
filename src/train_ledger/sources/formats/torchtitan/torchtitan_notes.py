"""What does a message of torchtitan say that is no measurement: a save, a load, a start, a warning?

The wordings changed. A save began as "Saving a full checkpoint at step N", later "Saving the checkpoint (or
staging if async is enabled).", since 2026 "Saving the checkpoint." or "Staging the checkpoint."; what was
only staged is not on its storage yet.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Note", "note_in"]

_S = r"(\d{1,9}(?:\.\d{1,9})?) ?s"
_BEGUN = re.compile(
    r"(?:Saving the|Staging the|Saving a (?:full|model only|model weights only)) checkpoint\b"
)
_AT_STEP = re.compile(r"\bstep,? (?:step )?(\d{1,15})\b")
_SAVED = re.compile(
    rf"Finished (saving|staging) the checkpoint( \(or staging if async is enabled\))? ?in {_S}"
)
_LAST = re.compile(rf"Last step checkpoint completed in {_S}")
_LOADING = re.compile(r"Loading the checkpoint (?:at|from) ")
_FOLDER = re.compile(r"step[- ](\d{1,15})")
_LOADED = re.compile(rf"Finished loading the checkpoint in {_S}")
_STARTS = re.compile(r"Training starts at step (\d{1,15})\b")
_COMPLETED = re.compile(r"Training completed\.?\s*\Z")
_PEAK = re.compile(r"Peak flops undefined for: (.{1,200}?), fallback to A100")
_RETRIES = re.compile(r"(\d{1,15}) \w{2,8} memory allocation retries\.")
_OOMS = re.compile(r"(\d{1,15}) \w{2,8} OOM errors thrown\.")
_WARNINGS = ("Pipeline Parallel loss is not visible", "Ran out of data")
_LONGEST = 500


@dataclass(frozen=True, slots=True)
class Note:
    """`kind` is an event's name, `loading` or, with a `counter`, a field's; `durable` is None where a save
    was perhaps only staged, `is_last` marks that of the last step, which may have said before that it begins.
    """

    kind: str
    step: int | None = None
    duration_s: float | None = None
    durable: bool | None = None
    counter: float | None = None
    message: str | None = None
    device: str | None = None
    is_last: bool = False


def note_in(text: str) -> Note | None:
    """What the message says; None for any other.

    >>> note = note_in("Finished staging the checkpoint in 0.25 seconds.")
    >>> note.kind, note.duration_s, note.durable
    ('ckpt_saved', 0.25, False)
    """
    return _save(text) or _load(text) or _course(text) or _warning(text)


def _save(text: str) -> Note | None:
    if match := _SAVED.match(text):
        durable = None if match[2] else match[1] == "saving"
        return Note("ckpt_saved", duration_s=float(match[3]), durable=durable)
    if match := _LAST.match(text):
        return Note("ckpt_saved", duration_s=float(match[1]), durable=True)
    if _BEGUN.match(text):
        step = _AT_STEP.search(text)
        return Note("ckpt_start", step=int(step[1]) if step else None, is_last="last step" in text)
    return None


def _load(text: str) -> Note | None:
    if match := _LOADED.match(text):
        return Note("ckpt_loaded", duration_s=float(match[1]))
    if _LOADING.match(text):
        steps = _FOLDER.findall(text[:_LONGEST])
        return Note("loading", step=int(steps[-1]) if steps else None)
    return None


def _course(text: str) -> Note | None:
    if match := _STARTS.match(text):
        return Note("run_start", step=int(match[1]))
    return Note("run_end") if _COMPLETED.match(text) else None


def _warning(text: str) -> Note | None:
    for kind, pattern in (("num_alloc_retries", _RETRIES), ("num_ooms", _OOMS)):
        if match := pattern.match(text):
            return Note(kind, counter=float(match[1]))
    if match := _PEAK.match(text):
        message = f"{match[0]}: MFU is measured against another GPU's peak and left out"
        return Note("warning", message=message, device=match[1])
    if text.startswith(_WARNINGS):
        return Note("warning", message=text.strip()[:_LONGEST])
    return None
