"""How long did the parts of a step take that its program measured under names of its own?

torchtitan's spans come as values `span_<name>_s`. A program may make up names, so that there is a limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from train_ledger.dash.metric_text import LONGEST_NAME, escaped, family_of_ranks, head_of

__all__ = ["MOST_SPANS", "is_span", "spans_of"]

MOST_SPANS = 32
"""More names than a trainer has; of more, the first by the alphabet."""

_METRIC = "train_span_seconds"
_HEAD = head_of(_METRIC, "gauge", "How long a part of the last step took, by the program's own name for it.")


def is_span(name: str) -> bool:
    """Whether a value of a step is one.

    >>> is_span("span_fwd_bwd_s"), is_span("span_s"), is_span("step_time_s")
    (True, False, False)
    """
    fits = len("span__s") < len(name) <= LONGEST_NAME
    return fits and name.startswith("span_") and name.endswith("_s")


def spans_of(labelled: Sequence[str], values: Sequence[Mapping[str, float]]) -> tuple[str, int]:
    """The family of all spans, each rank's `values` under its labels, and how many names were left out."""
    names = [name for name in set[str]().union(*values) if is_span(name)]
    texts = []
    for place, name in enumerate(sorted(names)[:MOST_SPANS]):
        own = escaped(name.removeprefix("span_").removesuffix("_s"))
        samples = [f'{labels[:-1]},name="{own}"}}' for labels in labelled]
        texts.append(
            family_of_ranks("" if place else _HEAD, _METRIC, samples, [told.get(name) for told in values])
        )
    return "".join(texts), max(0, len(names) - MOST_SPANS)
