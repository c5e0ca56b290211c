"""A reading is written as a line and read back as the same reading."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.facts import HardwareReading
from train_ledger.sources.hardware.gpu_fields import is_blank
from train_ledger.sources.hardware.reading_line import BadReadingError, line_of, reading_of

T = 1_770_000_000.0
NUMBERS = st.one_of(st.floats(allow_nan=False), st.integers(-(1 << 60), 1 << 60).map(float))


@given(
    st.dictionaries(st.sampled_from(["DCGM_FI_DEV_GPU_TEMP", "state_id", 'X{xid="7"}']), NUMBERS),
    st.one_of(st.none(), st.integers(0, 7)),
)
def test_what_is_written_is_read(values: dict[str, float], gpu: int | None) -> None:
    kept = {name: it for name, it in values.items() if not (name.startswith("DCGM_") and is_blank(it))}
    reading = HardwareReading(T, "n7", gpu=gpu, uuid="GPU-1", pci="0000:3b:00", by="nvml", values=kept)
    assert reading_of(line_of(reading).encode()) == reading


def test_a_port_and_what_is_not_observed() -> None:
    port = HardwareReading(T, "n7", device="mlx5_0", port=1, by="sysfs", values={"state_id": 4.0})
    nothing = HardwareReading(T, "n7", by="recorder", not_observed=("GPUs: no driver",))
    assert [reading_of(line_of(it).encode()) for it in (port, nothing)] == [port, nothing]


def test_names_of_other_versions_and_blanks_are_read_as_from_dcgm() -> None:
    line = {"t": T, "host": "n7", "gpu": 0, "by": "dcgm", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": 4}
    line |= {
        "DCGM_FI_DEV_MEMORY_TEMP": 2**63 - 16,
        "DCGM_FI_DEV_GPU_TEMP": "NaN",
        "note": "text",
        "odd": None,
    }
    assert reading_of(json.dumps(line).encode()).values == {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 4.0}


def test_a_counter_of_a_port_may_be_any_number() -> None:
    line = json.dumps({"t": T, "host": "n7", "device": "m", "port": 1, "x_total": 2147483632})
    assert reading_of(line.encode()).values == {"x_total": 2147483632.0}


def test_the_file_names_the_host_where_the_line_does_not() -> None:
    assert reading_of(b'{"t": 5, "gpu": 1}', host="n9", source="n9.jsonl:3") == HardwareReading(
        5.0, "n9", gpu=1, source="n9.jsonl:3"
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "not_json"), (b"\xff", "not_json"), (b"[" * 5000, "not_json"), (b"[1]", "not_object"),
        (b"null", "not_object"), (b'{"gpu": 1}', "missing_field"), (b'{"t": "x"}', "bad_number"),
        (b'{"t": 1e300}', "bad_number"), (b'{"t": NaN}', "bad_number"), (b'{"t": 5}', "missing_field"),
        (b'{"t": 5, "host": 7}', "bad_value"), (b'{"t": 5, "host": "n", "gpu": 1.5}', "bad_number"),
        (b'{"t": 5, "host": "n", "gpu": -1}', "bad_number"),
        (b'{"t": 5, "host": "n", "port": "x"}', "bad_number"),
        (b'{"t": 5, "host": "n", "not_observed": "x"}', "bad_value"),
        (b'{"t": 5, "host": "' + b"n" * 500 + b'"}', "bad_value"),
    ],
)  # fmt: skip
def test_a_bad_line_says_why(line: bytes, reason: str) -> None:
    with pytest.raises(BadReadingError, match=f"^{reason}$"):
        reading_of(line)


@given(st.one_of(st.binary(max_size=100), st.text(max_size=100).map(str.encode)))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    try:
        reading = reading_of(data, host="n7")
    except BadReadingError:
        return
    assert math.isfinite(reading.t)
