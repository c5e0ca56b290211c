"""Which ranks does Prometheus have? (item 10)"""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from train_ledger.ops.preflight.paging import Scraped

__all__ = ["scraped_by"]

_WITHIN_S = 10.0
_MOST_BYTES = 64 << 20
_CLOCK = "train_last_step_completed_timestamp_seconds"
_GPUS = 'count(count by (instance, Hostname, gpu) ({__name__=~"DCGM_FI_DEV_SM_CLOCK|DCGM_FI_DEV_GPU_TEMP"}))'


def scraped_by(url: str, run: str | None) -> Scraped:
    """Ask the Prometheus at `url` for the step clocks of `run` and for GPUs; never raises."""
    if not url:
        return Scraped(
            why_not="[prometheus] url is not set: no Prometheus is known that should scrape the ranks"
        )
    if run is None:
        return Scraped(url=url, why_not="without RUN it is not known which run's ranks should be there")
    try:
        clocks = _asked(url, f"{_CLOCK}{{run={json.dumps(run)}}}")
        gpus = _asked(url, _GPUS)
    except (urllib.error.URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        return Scraped(url=url, why_not=f"{url}: does not answer as Prometheus does: {reason}", fails=True)
    ranks = sorted({int(rank) for it in clocks if (rank := _label(it, "rank")).isdecimal()})
    return Scraped(tuple(ranks), _count(gpus), url)


def _asked(url: str, query: str) -> Sequence[Mapping[str, Any]]:
    address = f"{url.rstrip('/')}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    if not address.startswith(("http://", "https://")):
        raise ValueError("is no http address")
    with urllib.request.urlopen(address, timeout=_WITHIN_S) as answer:  # noqa: S310  # http, as was just seen
        told = json.loads(answer.read(_MOST_BYTES))
    found = told["data"]["result"] if isinstance(told, dict) and told.get("status") == "success" else None
    if not isinstance(found, list):
        raise ValueError("answers with no result")
    return [it for it in found if isinstance(it, dict)]


def _label(series: Mapping[str, Any], name: str) -> str:
    labels = series.get("metric")
    return str(labels.get(name, "")) if isinstance(labels, dict) else ""


def _count(result: Sequence[Mapping[str, Any]]) -> int:
    try:
        return int(float(result[0]["value"][1]))
    except (LookupError, TypeError, ValueError):
        return 0
