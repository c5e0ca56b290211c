"""Which ranks does Prometheus have? (item 10)"""

from __future__ import annotations

import json

from train_ledger.ops.preflight.paging import Scraped
from train_ledger.sources.prometheus import Prometheus, PrometheusError

__all__ = ["scraped_by"]

_CLOCK = "train_last_step_completed_timestamp_seconds"
_GPUS = (
    "count(count by (instance, Hostname, gpu) "
    '({__name__=~"DCGM_FI_DEV_SM_CLOCK|DCGM_FI_DEV_GPU_TEMP|DCGM_FI_DEV_GPU_UTIL"}))'
)


def scraped_by(url: str, run: str | None) -> Scraped:
    """Ask the Prometheus at `url` for the step clocks of `run` and for GPUs; never raises."""
    if not url:
        why = "[prometheus] url is not set: no Prometheus is known that should scrape the ranks"
        return Scraped(why_not=why)
    if run is None:
        return Scraped(why_not="without RUN it is not known which run's ranks should be there")
    try:
        prometheus = Prometheus(url)
        clocks = prometheus.query(f"{_CLOCK}{{run={json.dumps(run, ensure_ascii=False)}}}")
        gpus = prometheus.query(_GPUS)
    except PrometheusError as error:
        return Scraped(why_not=str(error), fails=True)
    ranks = sorted({int(rank) for it in clocks if (rank := it.labels.get("rank", "")).isdecimal()})
    return Scraped(tuple(ranks), int(gpus[0].value) if gpus else 0, prometheus.address.shown)
