"""Who works beside the training ends with it, and never in the midst of torch."""

from __future__ import annotations

import threading
import time

from train_ledger.signals.attendant import Attendant


def closing_takes_s(busy_s: float, in_torch: bool) -> float:
    """Close while a duty lasts for `busy_s`."""
    begun = threading.Event()

    def duty() -> None:
        begun.set()
        time.sleep(busy_s)

    attendant = Attendant(duty)
    attendant.start()
    attendant.send(lambda: None)
    assert begun.wait(5)
    started = time.monotonic()
    attendant.close(lambda: in_torch)
    return time.monotonic() - started


def test_what_hangs_is_waited_for_a_little() -> None:
    assert 1.8 < closing_takes_s(6.0, in_torch=False) < 4.0


def test_what_is_in_torch_is_waited_for_to_its_end() -> None:
    assert 2.5 < closing_takes_s(3.0, in_torch=True) < 5.0
