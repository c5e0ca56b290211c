"""Each defect that a monitoring setup really had is found, and a sound one is left in peace."""

from __future__ import annotations

from train_ledger.ops.lint import Exported, lint
from train_ledger.ops.lint.documents import Documents, Inhibiting, Query

SIDECAR = {
    "train_step_time_s": frozenset({"run", "rank"}),
    "train_mfu": frozenset({"run", "rank"}),
    "train_rank_info": frozenset({"run", "rank", "host", "gpu", "uuid"}),
}
RUNBOOK = "# Runbook\n## Slow\nLook at `train_mfu`.\n"


def alert(promql: str, *, labels: tuple[str, ...] = ("run",), url: str = "runbook.md#slow") -> Query:
    return Query("Slow", promql, "alerts.yml: Slow", labels, url)


def findings(
    documents: Documents, metrics: dict[str, frozenset[str]] = SIDECAR
) -> list[tuple[str, str, str]]:
    answer = lint(documents, Exported(metrics))
    return [(it.severity, it.what, it.why) for it in answer.findings]


def test_a_sound_setup() -> None:
    documents = Documents(
        alerts=(alert("max by (run) (run:slow:ratio) > 2"),),
        recordings=(Query("run:slow:ratio", "max by (run) (train_step_time_s)", "alerts.yml"),),
        panels=(Query('"Step time"', 'train_step_time_s{run="$run"}', "dashboard"),),
        inhibitions=(Inhibiting(("Slow",), ("Slow",), ("run",), frozenset({"run"}), "alertmanager.yml"),),
        runbook=RUNBOOK,
    )
    assert findings(documents) == []


def test_a_metric_that_nobody_exports_kills_the_alert_and_the_way_to_get_it_is_said() -> None:
    documents = Documents(
        alerts=(alert("max by (run) (DCGM_FI_DEV_ECC_DBE_VOL_TOTAL) > 0"),), runbook=RUNBOOK
    )
    [finding] = lint(documents, Exported(SIDECAR)).findings
    assert finding.severity == "never"
    assert finding.why == "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL is not exported"
    assert "counters file" in finding.fix


def test_through_recordings_the_metric_at_the_bottom_is_named() -> None:
    recordings = (
        Query("run:baseline:last", "max by (run) (train_mfu_baseline)", "alerts.yml"),
        Query("run:mfu:ratio", "max by (run) (train_mfu) / on (run) run:baseline:last", "alerts.yml"),
    )
    documents = Documents((alert("run:mfu:ratio < 0.85"),), recordings, runbook=RUNBOOK)
    [finding] = lint(documents, Exported(SIDECAR)).findings
    assert (finding.severity, finding.why) == ("never", "train_mfu_baseline is not exported")
    assert "run.json" in finding.fix


def test_a_fault_that_has_not_happened_yet_is_no_lack() -> None:
    promql = (
        'max by (run, host) (train_xid_total{level="page"} * on (uuid) group_left (run) train_rank_info) > 0'
    )
    assert findings(Documents((alert(promql, labels=("run", "host")),), runbook=RUNBOOK)) == []


def test_half_of_a_condition() -> None:
    [found] = findings(
        Documents((alert("max by (run) (train_mfu) < 9 or max by (run) (gone) > 1"),), runbook=RUNBOOK)
    )
    assert found[0] == "partly"


def test_an_alert_without_the_label_that_its_summary_and_routing_go_by() -> None:
    assert findings(Documents((alert("max(train_step_time_s) > 40"),), runbook=RUNBOOK)) == [
        (
            "wrong",
            "Slow names no run",
            "it comes without run, which its summary, grouping and inhibitions go by",
        )
    ]


def test_labels_renamed_by_another_version_of_an_exporter() -> None:
    metrics = {**SIDECAR, "DCGM_FI_DEV_SM_CLOCK": frozenset({"gpu", "UUID", "hostname"})}
    promql = (
        'max by (run) (DCGM_FI_DEV_SM_CLOCK{Hostname!=""} * on (gpu) group_left (run) train_rank_info) < 1500'
    )
    [found] = findings(Documents((alert(promql),), runbook=RUNBOOK), metrics)
    assert found == ("never", "Slow can never fire", "DCGM_FI_DEV_SM_CLOCK has no label Hostname")


def test_links_into_a_runbook_that_has_no_such_section() -> None:
    documents = Documents((alert("max by (run) (train_mfu) < 9", url="runbook.md#hang"),), runbook=RUNBOOK)
    assert [it[:2] for it in findings(documents)] == [("wrong", "Slow has no section in the runbook")]


def test_an_inhibition_without_a_guard_silences_every_run() -> None:
    inhibition = Inhibiting(("Slow",), ("Slow",), ("run",), frozenset(), "alertmanager.yml: inhibition 1")
    documents = Documents(
        (alert("max by (run) (train_mfu) < 9"),), inhibitions=(inhibition,), runbook=RUNBOOK
    )
    assert [it[:2] for it in findings(documents)] == [("wrong", "no guard for run")]


def test_an_inhibition_by_a_label_or_a_name_that_is_none() -> None:
    guarded = frozenset({"host"})
    inhibition = Inhibiting(("XidError",), ("Slow",), ("host",), guarded, "alertmanager.yml: inhibition 1")
    documents = Documents(
        (alert("max by (run) (train_mfu) < 9"),), inhibitions=(inhibition,), runbook=RUNBOOK
    )
    assert [it[2] for it in findings(documents)] == ["no rule is called XidError", "Slow has no label host"]


def test_expressions_that_are_none_and_panels_that_stay_empty() -> None:
    documents = Documents(
        (alert("max by (run) (train_mfu < 9"),),
        panels=(Query('"Data"', "train_data_loading_pct", "dashboard"),),
        runbook=RUNBOOK,
    )
    assert [it[:2] for it in findings(documents)] == [("wrong", "Slow"), ("never", '"Data" shows nothing')]


def test_a_chain_that_is_too_long_to_be_judged_is_said_to_be_so() -> None:
    documents = Documents((alert("train_mfu" + " + train_mfu" * 5000),), runbook=RUNBOOK)
    assert [it[:2] for it in findings(documents)] == [("wrong", "Slow")]


def test_a_runbook_that_asks_for_what_is_not_there() -> None:
    documents = Documents(runbook="# Runbook\nSee `train_step_time_seconds{run}`.\n")
    assert findings(documents) == [
        ("partly", "the runbook asks for train_step_time_seconds", "train_step_time_seconds is not exported")
    ]
