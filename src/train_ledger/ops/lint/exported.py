"""Which metrics with which labels do these exporters really export?"""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

from train_ledger.run_dir import read_small

__all__ = ["Exported", "ScrapeError", "exported_by", "fetched", "read_scrape"]

_NAME = re.compile(r"^[A-Za-z_:][\w:]*", re.MULTILINE | re.ASCII)
_TIMEOUT_S = 10.0
_LARGEST_BYTES = 256 << 20


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
    metrics: dict[str, frozenset[str]] = {}
    sources: list[str] = []
    for source, text in scrapes:
        sources.append(source)
        for name, labels in _samples(source, text):
            metrics[name] = metrics.get(name, frozenset()) | labels
    return Exported(metrics, tuple(sources))


def _samples(source: str, text: str) -> Iterable[tuple[str, frozenset[str]]]:
    written = set(_NAME.findall(text))
    try:
        return [
            (_as_written(sample.name, written), frozenset(sample.labels))
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        ]
    except (ValueError, KeyError, IndexError) as error:  # what the parser raises for lines that are none
        raise ScrapeError(
            f"{source}: is no text of metrics ({error}); is it the /metrics of an exporter?"
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
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ScrapeError(f"{url}: is no address of an exporter, as http://127.0.0.1:9466/metrics")
    whole = parts._replace(path=parts.path if parts.path.strip("/") else "/metrics").geturl()
    try:
        with urllib.request.urlopen(whole, timeout=_TIMEOUT_S) as answer:  # noqa: S310  # http and https alone
            content = answer.read(_LARGEST_BYTES + 1)
    except urllib.error.HTTPError as error:
        why = "is not ready yet; try again" if error.code == 503 else f"answers with HTTP status {error.code}"
        raise ScrapeError(f"{whole}: {why}") from None
    except (OSError, ValueError) as error:
        raise ScrapeError(f"{whole}: does not answer ({getattr(error, 'reason', error)})") from None
    if len(content) > _LARGEST_BYTES:
        raise ScrapeError(f"{whole}: answers with more than {_LARGEST_BYTES >> 20} MiB")
    return whole, content.decode("utf-8", "replace")
