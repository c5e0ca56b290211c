"""What happened when, and does the watching itself work?"""

from __future__ import annotations

from train_ledger.dash.grafana.panel import RUN, Annotation, Line, Mark, Panel, Row

__all__ = ["ANNOTATIONS", "EVENTS"]

_ALERTS = Panel(
    "Alerts",
    "states",
    "none",
    (
        Line(
            f'max by (alertname, level, host, gpu) (ALERTS{{alertstate="firing", {RUN}}})',
            "{{level}} {{alertname}} {{host}} {{gpu}}",
        ),
    ),
    "Which conditions held when. Alertmanager makes one page of all that belong to one incident.",
    width=24,
    values=((1, "fires", "red"),),
)
_ATTEMPTS = Panel(
    "Restarts",
    "lines",
    "none",
    (
        Line(f"max by (run) (train_restart_total{{{RUN}}})", "restarts"),
        Line(
            f"time() - max by (run) (train_attempt_started_timestamp_seconds{{{RUN}}})",
            "age of this attempt",
            right=True,
            unit="s",
        ),
    ),
    "Flat. Each step up cost what was not saved.",
    alerts=("TrainingRestartLoop", "TrainingRestarting"),
)
_SAVES = Panel(
    "Next checkpoint due in",
    "lines",
    "s",
    (Line(f"max by (run) (train_ckpt_due_timestamp_seconds{{{RUN}}}) - time()", "due in"),),
    "Below 0 it is overdue by the run's own intervals.",
    marks=(Mark(0.0, "green"),),
    alerts=("CheckpointSaveFailed",),
)
_EXPORTERS = Panel(
    "The exporters",
    "lines",
    "s",
    (
        Line(f"max by (instance) (train_exporter_poll_age_seconds{{{RUN}}})", "{{instance}}, last look"),
        Line(
            f"max by (instance) (train_exporter_lag_bytes{{{RUN}}})",
            "{{instance}}, not read yet",
            right=True,
            unit="bytes",
        ),
        Line(
            f"sum by (instance) (increase(train_exporter_bad_lines_total{{{RUN}}}[1h]))",
            "{{instance}}, bad lines in 1 h",
            right=True,
            unit="none",
        ),
        *(
            Line(
                f"sum by (run) (increase(train_{name}_total{{{RUN}}}[1h]))",
                f"{says} in 1 h",
                right=True,
                unit="none",
            )
            for name, says in (("dropped_lines", "lines dropped"), ("refused_values", "values refused"))
        ),
    ),
    "A look is a second old or two. An exporter that looks no more shows an old run as if it stood still.",
    marks=(Mark(30.0, "red"),),
    alerts=("TrainingTelemetryLost",),
)

_SILENCE = Panel(
    "Silence of each host",
    "lines",
    "s",
    (Line(f"run_host:train_heard_age:seconds{{{RUN}}}", "{{host}}"),),
    "A step, or a look at the hardware, is a moment old. One host alone that falls silent is told as such.",
    marks=(Mark("telemetry_lost_s", "red"),),
    alerts=("TrainingTelemetryLost",),
    width=12,
)
_UNSEEN = Panel(
    "What cannot be seen",
    "table",
    "none",
    (
        Line(
            f"max by (host, what) (train_hardware_not_observed and on (instance) train_run_state{{{RUN}}})",
            "missing",
        ),
    ),
    "Figures that a host's hardware or driver does not tell; nothing is judged of them there.",
    width=12,
)

EVENTS = Row("Events", (_ALERTS, _ATTEMPTS, _SAVES, _EXPORTERS, _SILENCE, _UNSEEN))

ANNOTATIONS = (
    Annotation(
        "Attempts",
        f"max by (run) (train_attempt_started_timestamp_seconds{{{RUN}}}) * 1000",
        "an attempt begins",
        "blue",
        "Where the run was started, or started again.",
        value_is_time=True,
    ),
    Annotation(
        "Checkpoints",
        f"max by (run) (train_ckpt_last_success_timestamp_seconds{{{RUN}}}) * 1000",
        "a checkpoint is saved",
        "green",
        "Up to where the run would go back.",
        value_is_time=True,
    ),
    Annotation(
        "Failed checkpoints",
        f"max by (run) (train_ckpt_failed_total{{{RUN}}})\n"
        f"> max by (run) (min_over_time(train_ckpt_failed_total{{{RUN}}}[1m]))",
        "a checkpoint fails",
        "orange",
        "What would be lost has grown.",
    ),
    Annotation(
        "Alerts",
        f'max by (alertname, level, host, gpu) (ALERTS{{alertstate="firing", {RUN}}})',
        "{{level}}: {{alertname}} {{host}} {{gpu}}",
        "red",
        "While a condition holds.",
        labels=("level", "host", "gpu"),
    ),
)
