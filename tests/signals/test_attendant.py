"""Who works beside the training ends with it, and never in the midst of torch."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from train_ledger.signals.attendant import Attendant


@pytest.fixture
def ends() -> Iterator[threading.Event]:
    """When the duty that goes on may end."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def busy(ends: threading.Event) -> Attendant:
    """One that is at its duty."""
    begun = threading.Event()

    def duty() -> None:
        begun.set()
        ends.wait(120)

    attendant = Attendant(duty)
    attendant.start()
    attendant.send(lambda: None)
    assert begun.wait(60)
    return attendant


def test_what_hangs_is_waited_for_a_little(busy: Attendant, ends: threading.Event) -> None:
    began_s = time.monotonic()
    busy.close(lambda: False)
    assert time.monotonic() - began_s > 1.8
    assert not ends.is_set(), "not to its end"


def test_what_is_in_torch_is_waited_for_to_its_end(busy: Attendant, ends: threading.Event) -> None:
    closing = threading.Thread(target=busy.close, args=(lambda: True,))
    closing.start()
    closing.join(3.0)
    assert closing.is_alive(), "longer than what merely hangs"
    ends.set()
    closing.join(60)
    assert not closing.is_alive()
