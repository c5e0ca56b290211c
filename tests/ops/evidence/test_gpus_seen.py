"""Hardware that its readings show to have failed is named; what is somebody else's, or old, is not."""

from __future__ import annotations

import json

import pytest

from ops.test_diagnose import put_dumps
from train_ledger.chaos import fleet
from train_ledger.config import Config
from train_ledger.ops import diagnose

CULPRIT = 5
EVERY_S = 10.0
BEFORE_ITS_END_S = -10.0
XID, DBE = "DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"
PENDING = "DCGM_FI_DEV_ROW_REMAP_PENDING"


@pytest.fixture
def made(tmp_path):
    return fleet.write(tmp_path / "run", fault="process_gone", culprit=CULPRIT, hosts=2, ranks_per_host=4)


@pytest.fixture
def well(tmp_path):
    return fleet.write(tmp_path / "run", culprit=CULPRIT, hosts=2, ranks_per_host=4)


def started(made, rank):
    return json.loads(made.run_dir.signals_of(rank).read_text().splitlines()[0])


def record(made, *, failed_t=None, strangers=0, **of_culprit):
    """Readings of all GPUs; of the culprit's from `failed_t` on with these values, or none (gone=True)."""
    made.run_dir.hardware.mkdir(exist_ok=True)
    middle_t = made.fault_t or made.t - 60
    failed_t = middle_t if failed_t is None else failed_t
    gone = of_culprit.pop("gone", False)
    for number, host in enumerate(("node000", "node001")):
        lines = []
        for look in range(round((made.t - middle_t + 300) / EVERY_S)):
            t = middle_t - 300 + look * EVERY_S
            for index in range(4 + strangers):
                rank = 4 * number + index
                place = started(made, rank) if index < 4 else {"gpu": index, "uuid": f"GPU-x{index}"}
                bad = t >= failed_t and (rank == CULPRIT if index < 4 else gone)
                if not (bad and gone):
                    reading = {"t": t, "host": host, "gpu": place["gpu"], "uuid": place["uuid"], "by": "dcgm"}
                    zero = {XID: 0, DBE: 0, "DCGM_FI_DEV_SM_CLOCK": 1980}
                    lines.append({**reading, **zero, **(of_culprit if bad else {})})
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (made.run_dir.hardware / f"{host}.jsonl").write_text(text)


def ports(made, host, *, since_s=0.0, **bad):
    """Readings of a port that is well until `since_s` after the fault."""
    made.run_dir.hardware.mkdir(exist_ok=True)
    lines = []
    for look in range(36):
        t = made.fault_t - 300 + look * EVERY_S
        values = {"state_id": 4, "rate_bytes_per_second": 5e10, "symbol_error_total": 3}
        if t >= made.fault_t + since_s:
            values |= bad
        lines.append({"t": t, "host": host, "device": "mlx5_0", "port": 1, "by": "sysfs", **values})
    with (made.run_dir.hardware / f"{host}.jsonl").open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def found(made, after_s=5.0):
    return diagnose(made.run_dir, Config(), at=made.t + after_s)


def test_a_gpu_that_is_gone_is_the_cause_of_the_hang_that_it_made(made):
    put_dumps(made, behind={CULPRIT})
    record(made, gone=True)
    told = found(made)
    assert (told.cause, told.ranks, told.hosts, told.confidence) == (
        "hardware.gpu_lost",
        (5,),
        ("node001",),
        "high",
    )
    assert len(told.gpus) == 1
    assert "no longer seen" in told.evidence[0]
    assert "reboot" in told.next[0].why


@pytest.mark.parametrize(("values", "cause"), [({XID: 79}, "hardware.xid"), ({DBE: 1}, "hardware.ecc")])
def test_what_its_readings_say_of_a_gpu_goes_before_the_hang(made, values, cause):
    put_dumps(made, behind={CULPRIT})
    record(made, **values)
    told = found(made)
    assert (told.cause, told.ranks, told.confidence) == (cause, (5,), "high")


@pytest.mark.parametrize("values", [{XID: 43}, {XID: 31}, {XID: 45}, {"DCGM_FI_DEV_SM_CLOCK": 300}])
def test_what_a_program_did_is_no_cause(made, values):
    put_dumps(made, behind={CULPRIT})
    record(made, **values)
    told = found(made)
    assert (told.cause, told.ranks) == ("hang.rank_missing", (5,))
    assert {"hardware.gpu_lost", "hardware.ecc"} <= {it.cause for it in told.ruled_out}


def test_a_gpu_of_nobody_accuses_nobody(made):
    put_dumps(made, behind={2})
    record(made, strangers=1, gone=False)
    assert found(made).cause == "hang.rank_missing"


def test_what_was_over_long_before_is_no_cause(made):
    put_dumps(made, behind={CULPRIT})
    record(made, failed_t=made.fault_t - 250, **{XID: 79, DBE: 1})
    assert found(made).cause == "hang.rank_missing"


@pytest.mark.parametrize(
    ("values", "cause"),
    [({XID: 79}, "hardware.xid"), ({DBE: 1}, "hardware.ecc"), ({PENDING: 1}, "hardware.ecc")],
)
def test_a_run_that_goes_on_over_failed_hardware(well, values, cause):
    record(well, failed_t=well.t - 60, **values)
    told = found(well, BEFORE_ITS_END_S)
    assert (told.state, told.cause) == ("hardware_fault" if PENDING not in values else "running", cause)
    assert (told.cause, told.ranks, told.hosts) == (cause, (5,), ("node001",))
    assert "take the host out" in told.next[0].why


def test_a_run_that_goes_on_over_well_hardware(well):
    record(well)
    assert found(well, BEFORE_ITS_END_S).cause == "none"


def test_a_link_that_fell_when_all_waited_is_named_by_its_host(made):
    put_dumps(made, behind=set())
    ports(made, "node001", state_id=1)
    told = found(made)
    assert (told.cause, told.ranks, told.hosts, told.gpus) == ("hardware.nic", (), ("node001",), ())
    assert "the link is down" in told.evidence[0]
    assert "ibstat" in told.next[0].command


def test_a_link_of_another_host_does_not_acquit_who_never_came(made):
    put_dumps(made, behind={CULPRIT})
    ports(made, "node000", state_id=1)
    assert (found(made).cause, found(made).ranks) == ("hang.rank_missing", (5,))


@pytest.mark.parametrize(
    ("since_s", "values"), [(-250, {"state_id": 1}), (0, {"symbol_error_total": 9})], ids=["before", "errors"]
)
def test_what_a_port_counts_is_told_and_is_no_cause(made, since_s, values):
    put_dumps(made, behind=set())
    ports(made, "node001", since_s=since_s, **values)
    told = found(made)
    assert told.cause != "hardware.nic"
    assert any("port mlx5_0 of node001" in line for line in told.evidence)
