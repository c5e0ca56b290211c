"""How is one metric written down for Prometheus?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import cast

__all__ = ["LONGEST_NAME", "Sample", "escaped", "family", "family_of_ranks", "head_of", "labels"]

Sample = tuple[str, float]
"""A label string with its braces, and the value."""

LONGEST_NAME = 128
"""Characters of a name that a signal line may give to a metric: lines are up to a mebibyte long."""

_LONGEST_LABEL = 1024


def labels(**pairs: object) -> str:
    r"""A label string, in the order given, values escaped; a pair that is None is left out.

    >>> labels(run='r"42', rank=5, host=None)
    '{run="r\\"42",rank="5"}'
    """
    told = ((name, str(value)[:_LONGEST_LABEL]) for name, value in pairs.items() if value is not None)
    inner = ",".join(f'{name}="{escaped(text)}"' for name, text in told)
    return f"{{{inner}}}"


def escaped(text: str) -> str:
    """Text as it stands between quotes, and in a HELP line."""
    # A lone surrogate, as a file name can hold, is no UTF-8 and would break the whole answer.
    clean = text.encode("utf-8", "replace").decode()
    return clean.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def family(name: str, kind: str, help: str, samples: Iterable[Sample]) -> str:
    """One metric with its HELP and TYPE lines, "" where it has no samples."""
    lines = [f"{name}{labelled} {_number(value)}\n" for labelled, value in samples]
    return head_of(name, kind, help) + "".join(lines) if lines else ""


def head_of(name: str, kind: str, help: str) -> str:
    """The HELP and TYPE lines of a metric."""
    said = help.replace("\\", r"\\").replace("\n", r"\n")
    return f"# HELP {name} {said}\n# TYPE {name} {kind}\n"


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def family_of_ranks(head: str, name: str, labelled: list[str], values: list[float | None]) -> str:
    """`family` where each value has its label string: tens of thousands of numbers, nearly all finite.

    `head` is what `head_of` gives; None is no sample.
    """
    told = cast(list[float], values)
    if None in values:
        labelled = [labels for labels, value in zip(labelled, values, strict=True) if value is not None]
        told = [value for value in values if value is not None]
    if math.isfinite(sum(told)):
        lines = [f"{name}{labels} {value!r}\n" for labels, value in zip(labelled, told, strict=True)]
    else:
        lines = [f"{name}{labels} {_number(value)}\n" for labels, value in zip(labelled, told, strict=True)]
    return head + "".join(lines) if lines else ""
