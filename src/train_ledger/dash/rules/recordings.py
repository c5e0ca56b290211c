"""What does Prometheus compute first, for the alerts to read?"""

from __future__ import annotations

from textwrap import indent

from train_ledger.dash.rule import Recording

__all__ = ["SHARED_RECORDINGS", "age_of", "of", "remembered"]


def of(function: str, *arguments: str) -> str:
    """`function (…)` over several lines, so that the file can be read by whoever is woken by it."""
    inner = ",\n".join(indent(argument, "  ") for argument in arguments)
    return f"{function} (\n{inner}\n)".lstrip()


def remembered(metric: str) -> str:
    """A metric of the current attempt: of live exporters, and of dead ones as they said it last."""
    dead = f"last_over_time({metric}[$lookback])\nunless on (instance) train_exporter_clock_seconds"
    known = f"{metric}\nor {of('', dead)}"
    return f"{of('', known)}\nunless on (run, instance) run_instance:train_superseded:attempt"


def age_of(metric: str) -> str:
    """Seconds since the time that a metric holds; NaN and 0 are no times."""
    offset = "last_over_time(train:clock_offset:seconds[$lookback])"
    times = of("", f"{of('', remembered(metric))} > 0")
    corrected = f"{times}\n+ on (instance) group_left () {offset}"
    return f"time() - {of('', corrected)}"


_FINISHED = of("", remembered("train_run_finished"))
_OF_SIDECARS = "last_over_time(train_exporter_clock_seconds[$lookback])"

SHARED_RECORDINGS: tuple[Recording, ...] = (
    Recording("train:judge_awake:bool", "vector(1)"),
    Recording(
        "train:clock_offset:seconds",
        """max by (instance) (timestamp(train_exporter_clock_seconds) - train_exporter_clock_seconds)
or on (instance) 0 * max by (instance) (train_stall_threshold_seconds)""",
    ),
    Recording(
        "run_instance:train_superseded:attempt",
        """max by (run, instance) (last_over_time(train_restart_total[$lookback]))
!= on (run) group_left () max by (run) (train_restart_total)""",
    ),
    Recording(
        "run:train_attempt_age:seconds",
        of("min by (run)", age_of("train_attempt_started_timestamp_seconds")),
    ),
    Recording(
        "run_rank:train_step_age:seconds",
        of("min by (run, rank)", age_of("train_last_step_completed_timestamp_seconds")),
    ),
    # At least half of the ranks are no older. A quantile of an even number would lie between the two in the
    # middle, which are an hour apart where one of two hosts fell silent: one more below all makes it odd.
    Recording(
        "run:train_step_age:seconds",
        of(
            "quantile by (run)",
            "0.5",
            """run_rank:train_step_age:seconds
or label_replace(
  0 * (count by (run) (run_rank:train_step_age:seconds) % 2 == 0) - 1e9, "rank", "none", "", ""
)""",
        )
        + "\nor on (run) run:train_attempt_age:seconds",
    ),
    Recording(
        "run:train_stall_threshold:seconds",
        of("max by (run)", remembered("train_stall_threshold_seconds"))
        + "\nor on (run) 0 * run:train_step_age:seconds + $start_up_limit_s",
    ),
    # Each sidecar knows of its own host's ranks: it is over when all of them say so, or who knows them all.
    Recording(
        "run:train_run_finished:bool",
        of(
            "max by (run)",
            f"{of('min by (run)', f'{_FINISHED} and on (instance) {_OF_SIDECARS}')}\n"
            f"or {_FINISHED} unless on (instance) {_OF_SIDECARS}",
        ),
    ),
    Recording("run:train_run_age:seconds", of("max by (run)", age_of("train_run_started_timestamp_seconds"))),
    Recording("run:train_step:last", of("max by (run)", remembered("train_step"))),
    Recording("run:train_restart:count", of("max by (run)", remembered("train_restart_total"))),
    Recording(
        "run:train_restarting:bool", of("max by (run)", remembered('train_run_state{state="restarting"}'))
    ),
    Recording("run_rank:train_process_up:last", of("max by (run, rank)", remembered("train_process_up"))),
)
