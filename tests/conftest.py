"""What every test may rely on, however the tests were started."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what runs in its background with Ctrl-C ignored, and so would be all that tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
