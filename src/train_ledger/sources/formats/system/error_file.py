"""What did a rank leave in the error file that torchrun gave it?

torch.distributed.elastic's `@record` writes the exception that ends a rank into error.json beside its logs:
{"message": {"message": "Type: text", "extraInfo": {"py_callstack", "timestamp"}}}, or {"message": "text"}.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from train_ledger.facts import Fact, Fault
from train_ledger.run_dir import parsed_json
from train_ledger.sources.formats.system.exceptions import named
from train_ledger.sources.signal_lines.jsonl import LATEST_T

__all__ = ["ErrorFile"]

_HEAD = re.compile(rb'\A\s{0,100}\{\s{0,100}"message":')
_FRAME = re.compile(r'File "[^"\n]{1,1000}", line \d{1,9}, in [^\n]{1,200}')


class ErrorFile:
    """error.json of one rank."""

    name: ClassVar[str] = "torchrun's error file"
    knows: ClassVar[frozenset[str]] = frozenset()

    def fits(self, head: bytes, file_name: str) -> bool:
        return file_name.endswith(".json") and _HEAD.match(head) is not None

    def facts(self, content: bytes, source: str) -> Iterable[Fact]:
        try:
            told = parsed_json(content)
        except ValueError as error:
            raise ValueError("is no whole JSON") from error
        message = told.get("message") if isinstance(told, dict) else None
        inside = message if isinstance(message, dict) else {"message": message}
        text = inside.get("message")
        if not isinstance(text, str):
            raise ValueError("tells no message")
        extra = inside.get("extraInfo")
        return [_fault(text, extra if isinstance(extra, dict) else {}, f"{source}:1")]


def _fault(text: str, extra: Mapping[str, Any], source: str) -> Fault:
    kind, _, message = text.partition(": ")
    code, more = named(text)
    frames = _FRAME.findall(str(extra.get("py_callstack", ""))[:100_000])
    details = {"type": kind[:200], "message": message[:500], **more}
    if frames:
        details["frame"] = frames[-1]
    return Fault(_time(extra.get("timestamp")), code, source=source, details=details)


def _time(value: object) -> float | None:
    try:
        t = float(str(value))
    except ValueError:
        return None
    return t if 0 < t < LATEST_T else None
