import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.fields import EVENTS, FIELDS, PHASES, read_number, written_number


def test_a_counter_is_exported_as_one_and_a_gauge_under_its_own_name():
    assert FIELDS["skipped"].metric == "train_skipped_total"
    assert FIELDS["restart_total"].metric == "train_restart_total"
    assert FIELDS["mem_reserved_peak"].metric == "train_mem_reserved_peak"


def test_no_two_fields_share_a_metric():
    metrics = [field.metric for field in FIELDS.values()]
    assert len(set(metrics)) == len(metrics)


def test_every_field_says_what_is_normal_and_what_is_not():
    for field in FIELDS.values():
        assert field.taken_at, field
        assert field.normal, field
        assert field.abnormal, field


def test_a_name_in_seconds_has_seconds_as_its_unit():
    for name, field in FIELDS.items():
        assert name.endswith("_s") == (field.unit == "s"), name


@given(st.floats())
def test_a_number_survives_being_written_and_read(value):
    read = read_number(written_number(value))
    assert read == value or (math.isnan(value) and math.isnan(read))


@pytest.mark.parametrize("value", [None, True, "3", "", [], {}, "Nan"])
def test_what_is_no_number_is_not_read_as_one(value):
    assert read_number(value) is None


def test_an_integer_too_large_for_a_float_is_infinite():
    assert read_number(10**400) == math.inf
    assert read_number(-(10**400)) == -math.inf


def test_phases_and_events_are_named_once():
    assert len(set(PHASES)) == len(PHASES)
    assert len(set(EVENTS)) == len(EVENTS)
