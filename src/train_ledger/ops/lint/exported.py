"""Which metrics with which labels do these exporters really export?"""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

from train_ledger.run_dir import read_small
from train_ledger.sources.hardware.served_text import NotServedError, served_text

__all__ = ["Exported", "ScrapeError", "exported_by", "fetched", "read_scrape"]

_NAME = re.compile(r"^[A-Za-z_:][\w:]*", re.MULTILINE | re.ASCII)
_TIMEOUT_S = 20.0
_LONGEST_WHY = 200
_LARGEST_BYTES = 64 << 20


class ScrapeError(Exception):
    """A scrape cannot be had or read; the text says of whom and why."""


@dataclass(frozen=True, slots=True)
class Exported:
    """`metrics` maps the name of each sample to the labels that any of its series has.

    `sources` are the addresses and files that it was read from.
    """

    metrics: Mapping[str, frozenset[str]] = field(default_factory=dict)
    sources: tuple[str, ...] = ()


def exported_by(scrapes: Iterable[tuple[str, str]]) -> Exported:
    """What is in scrapes, each (where it is from, its text). Raises ScrapeError for what is no scrape."""
    metrics: dict[str, set[str]] = {}
    sources: list[str] = []
    for source, text in scrapes:
        sources.append(source)
        samples = list(_samples(source, text))
        if not samples:
            raise ScrapeError(f"{source}: has no metric in it; did whoever saved it reach the exporter?")
        for name, labels in samples:
            metrics.setdefault(name, set()).update(labels)
    return Exported({name: frozenset(labels) for name, labels in metrics.items()}, tuple(sources))


def _samples(source: str, text: str) -> Iterator[tuple[str, Iterable[str]]]:
    written = set(_NAME.findall(text))
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                yield _as_written(sample.name, written), sample.labels
    except (ValueError, KeyError, IndexError) as error:  # what the parser raises for lines that are none
        why = " ".join(str(error).split())[:_LONGEST_WHY]
        raise ScrapeError(
            f"{source}: is no text of metrics ({why}); is it the /metrics of an exporter?"
        ) from None


def _as_written(name: str, written: set[str]) -> str:
    """The parser gives every counter the ending of OpenMetrics, which DCGM's counters do not have."""
    return name if name in written else name.removesuffix("_total")


def read_scrape(path: Path) -> tuple[str, str]:
    """A scrape that was saved to a file. Raises ScrapeError."""
    try:
        return str(path), read_small(path, limit_bytes=_LARGEST_BYTES).decode()
    except OSError as error:
        raise ScrapeError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ScrapeError(f"{path}: is no text; save what `curl URL/metrics` prints") from None


def fetched(url: str) -> tuple[str, str]:
    """What an exporter answers now; `/metrics` is put behind a bare address. Raises ScrapeError."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:  # a bracket that is not closed
        is_address = False
    if not is_address:
        raise ScrapeError(f"{url!r} is no address of an exporter, as http://127.0.0.1:9466/metrics")
    whole = parts._replace(path=parts.path if parts.path.strip("/") else "/metrics").geturl()
    try:
        return whole, served_text(whole, timeout_s=_TIMEOUT_S, most_bytes=_LARGEST_BYTES)
    except NotServedError as error:
        is_early = error.status == http.client.SERVICE_UNAVAILABLE
        raise ScrapeError(f"{whole}: is not ready yet; try again" if is_early else str(error)) from None
