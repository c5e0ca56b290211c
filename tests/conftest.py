"""What every test may rely on, however the tests were started."""

import shutil
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what runs in its background with Ctrl-C ignored, and so would be all that tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Where more runs than there are cores, one example may take any time, and drawing one too: no law is of that.
settings.register_profile("loaded", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("loaded")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium; where there is none, what is looked at in it is skipped."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as play:
        launched = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield launched
        launched.close()
