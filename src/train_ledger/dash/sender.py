"""Who sends one message, and then ends?

`python -m train_ledger.dash.sender OUTBOX/ID.json` runs as a process of its own session, so that the message
goes out even if the keeper is killed the moment after it decided on it. All addresses are served at the same
time; each that fails is tried again a few times, but none that took the message and did not answer in time.
An address of several receivers is tried as a whole. Only here is apprise imported: it costs half a second.
"""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from train_ledger.dash.claim import claimant
from train_ledger.dash.message import Notification, Outcome, Target, redacted
from train_ledger.dash.outbox import write_private

__all__ = ["deliver", "main"]

_PAUSES_S = (1.0, 4.0, 15.0)
"""Before the second, third and fourth try."""


def main(arguments: list[str] | None = None) -> int:
    """Send the message in the file named by the only argument, unless another sender has claimed it."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 1 or not arguments[0].endswith(".json"):
        print("usage: python -m train_ledger.dash.sender OUTBOX/ID.json", file=sys.stderr)
        return 2
    path = Path(arguments[0])
    stem = path.name.removesuffix(".json")
    try:
        if not _claim(path.with_name(f"{stem}.claim")):
            return 0
        outcome = _outcome_of(path, stem)
        write_private(path.with_name(f"{stem}.outcome.json"), outcome)
    except OSError as error:
        print(f"{path}: {error}", file=sys.stderr)
        return 2
    return 0 if outcome.delivery == "delivered" else 1


def _claim(path: Path) -> bool:
    """Whether the message is ours to send; the claim says who we are before this returns."""
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(handle, "wb") as file:
        file.write(json.dumps(claimant()).encode())
        file.flush()
        os.fsync(file.fileno())
    return True


def _outcome_of(path: Path, stem: str) -> Outcome:
    try:
        notification = Notification.from_json(json.loads(path.read_bytes()))
    except (ValueError, KeyError, TypeError) as error:
        return Outcome(stem, "failed", time.time(), why=f"{path}: is no message: {type(error).__name__}")
    return deliver(notification)


def deliver(notification: Notification, *, pauses_s: tuple[float, ...] = _PAUSES_S) -> Outcome:
    """Send the message to every address and run its command; say what became of each.

    A message without any address counts as delivered: there was nowhere to send it to.
    """
    tasks: list[tuple[str, Callable[[], str | None]]] = [
        (redacted(url), _to_url(notification, url)) for url in notification.urls
    ]
    if notification.command:
        tasks.append((f"command {Path(notification.command[0]).name}", _to_command(notification)))
    with ThreadPoolExecutor(max_workers=max(1, len(tasks))) as pool:
        targets = tuple(pool.map(lambda task: _tried(task[0], task[1], pauses_s), tasks))
    return Outcome.of(notification.id, time.time(), targets)


class _UncertainError(Exception):
    """It may have arrived, so it must not be tried again."""


def _tried(name: str, send: Callable[[], str | None], pauses_s: tuple[float, ...]) -> Target:
    error: str | None = None
    for number, pause_s in enumerate((0.0, *pauses_s), start=1):
        time.sleep(pause_s)
        try:
            error = send()
        except _UncertainError as uncertain:
            return Target(
                name, ok=False, tries=number, error=f"{uncertain}; not tried again, it may have arrived"
            )
        if error is None:
            return Target(name, ok=True, tries=number)
    return Target(name, ok=False, tries=len(pauses_s) + 1, error=error)


def _to_url(notification: Notification, url: str) -> Callable[[], str | None]:
    import apprise

    kind = {
        "page": apprise.NotifyType.FAILURE,
        "record": apprise.NotifyType.INFO,
        "resolved": apprise.NotifyType.SUCCESS,
    }[notification.level]
    server = apprise.Apprise.instantiate(url, suppress_exceptions=True)

    def send() -> str | None:
        if server is None:
            return "apprise does not understand this URL; see the list of services in apprise's documentation"
        server.socket_read_timeout = notification.timeout_s
        with _Reasons() as reasons:
            arrived = server.notify(title=notification.title, body=notification.body, notify_type=kind)
        return None if arrived else reasons.why()

    return send


class _Reasons(logging.Handler):
    """What apprise logs about a failure, reduced to words that hold no part of an address.

    Each thread that sends hears its own lines only.
    """

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._lines: list[str] = []
        self._logger = logging.getLogger("apprise")
        self._mine = threading.get_ident()

    def __enter__(self) -> _Reasons:
        self._logger.setLevel(logging.DEBUG)
        self._logger.propagate = False
        self._logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._mine:
            self._lines.append(record.getMessage())

    def why(self) -> str:
        text = "\n".join(self._lines)
        if "timed out" in text and "onnect timeout" not in text:
            raise _UncertainError("no answer in time")
        if status := re.search(r"error=(\d{3})\b", text):
            return f"answered with HTTP status {status[1]}"
        if "Connection refused" in text:
            return "connection refused"
        return "no connection" if "onnection" in text else "not accepted; apprise gives no reason"


def _to_command(notification: Notification) -> Callable[[], str | None]:
    message = json.dumps(notification.message()).encode()

    def send() -> str | None:
        try:
            process = subprocess.Popen(
                list(notification.command),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return f"cannot be run: {error.strerror if isinstance(error, OSError) else error}"
        try:
            process.communicate(message, timeout=notification.timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise _UncertainError(f"still ran after {notification.timeout_s:g} s and was killed") from None
        return None if process.returncode == 0 else f"exit status {process.returncode}"

    return send


if __name__ == "__main__":
    sys.exit(main())
