"""How does the speed of a run read as Prometheus metrics?"""

from __future__ import annotations

from collections.abc import Iterator

from train_ledger.config import Alerts
from train_ledger.dash.metric_text import family, labels
from train_ledger.dash.speed_conditions import SpeedFigures, rank_outliers, speed_figures
from train_ledger.ledger.state import RunState
from train_ledger.ledger.trends import Outlier

__all__ = ["outliers_text", "speed_text"]


def speed_text(state: RunState, alerts: Alerts) -> str:
    """The families; whoever folds only a part of the ranks tells what those know."""
    figures = speed_figures(state, alerts)
    told = [*_of_run(state.run, figures), *_of_ranks(state.run, figures)]
    return "".join([*told, _outliers(state.run, figures.outliers)])


def outliers_text(state: RunState) -> str:
    """The one family that needs all ranks: what a keeper adds."""
    return _outliers(state.run, rank_outliers(state))


def _of_run(name: str, figures: SpeedFigures) -> Iterator[str]:
    run = labels(run=name)
    if (times := figures.step_times) is not None:
        yield family(
            "train_step_time_recent_seconds",
            "gauge",
            "Median of the steady step times of the last minutes; none for as long after a start.",
            [(run, times.recent_s)],
        )
        yield family(
            "train_step_time_usual_seconds",
            "gauge",
            "The same of an earlier hour of the run.",
            [(run, times.usual_s)],
        )
    if figures.mfu_of_baseline is not None:
        yield family(
            "train_mfu_sustained_fraction",
            "gauge",
            "Mean mfu of the best part of the last half hour, as a share of mfu_baseline (run.json, else a "
            "rank's line); none without a baseline, and none before an attempt is as old.",
            [(run, figures.mfu_of_baseline)],
        )
    if (spike := figures.spike) is not None:
        yield family(
            "train_grad_norm_spike_ratio",
            "gauge",
            "How many times the median of those before the last grad_norm spike was; none without one.",
            [(run, spike.grad_norm / spike.median)],
        )


def _of_ranks(name: str, figures: SpeedFigures) -> Iterator[str]:
    yield family(
        "train_data_wait_fraction",
        "gauge",
        "Share of the step time that a rank waited for data in the last minutes.",
        [(labels(run=name, rank=rank), share) for rank, share in sorted(figures.data_waits.items())],
    )
    yield family(
        "train_fragmented_alloc_retries",
        "gauge",
        "Retries of allocation within the window, of a rank whose inactive split memory grew too.",
        [(labels(run=name, rank=rank), it.retries) for rank, it in sorted(figures.fragmented.items())],
    )


def _outliers(name: str, outliers: tuple[Outlier, ...]) -> str:
    return family(
        "train_rank_outlier_ratio",
        "gauge",
        "Own work of a rank to its peers' of the same stage; none of ranks that do not stand out.",
        [(labels(run=name, rank=it.rank, host=it.host), it.ratio) for it in outliers],
    )
