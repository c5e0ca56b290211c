"""How is one command run on many hosts, and what came back from each?

By whatever starts things there: ssh, srun, kubectl, pdsh, or a template of the user's own. Nothing goes
through a shell on this side. Each host has its own time and its own bound of what it may answer; one that
fails, hangs or prints junk is told with its reason and stops nothing.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO

__all__ = ["TEMPLATES", "Launcher", "LauncherError", "Outcome", "answer_line", "launch"]

TEMPLATES = {
    "ssh": "ssh -o BatchMode=yes -o ConnectTimeout=10 {host} {command}",
    "srun": "srun --overlap --nodes=1 --ntasks=1 --nodelist={host} {argv}",
    "kubectl": "kubectl exec {host} -- {argv}",
    "pdsh": "pdsh -N -w {host} {command}",
}
"""{command} is the command as one text for the shell of the other side, {argv} its words as they are."""

_LOOK_EVERY_S = 0.05
_MOST_COMPLAINT_BYTES = 8 << 20
_SHOWN_COMPLAINT = 300
_SHOWN_JUNK_BYTES = 4096
_ANSWER = re.compile(rb'(?:\A|[\r\n])(\{"schema":[^\r\n]*)')


class LauncherError(Exception):
    """A launcher cannot be used; the text says what it must hold."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one host answered: all its standard output, also where it failed; `why` it failed, else None."""

    host: str
    output: bytes
    why: str | None
    took_s: float


@dataclass(frozen=True, slots=True)
class Launcher:
    """Words with {host}, {command} and {argv} in them."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Launcher:
        """ssh, srun, kubectl or pdsh, or a template; raises LauncherError for one without a command."""
        try:
            words = tuple(shlex.split(TEMPLATES.get(text, text)))
        except ValueError as error:
            raise LauncherError(f"{text!r}: {error}") from error
        if not any("{command}" in word or word == "{argv}" for word in words):
            named = ", ".join(TEMPLATES)
            raise LauncherError(f"{text!r} is none of {named}, and no template: it has no {{command}} in it")
        return cls(words)

    def command(self, host: str, argv: Sequence[str]) -> list[str]:
        """The words to start on this side, to have `argv` run on `host`.

        >>> Launcher.of("ssh {host} {command}").command("node-1", ["echo", "a b"])
        ['ssh', 'node-1', "echo 'a b'"]
        >>> Launcher.of("srun -w {host} {argv}").command("node-1", ["echo", "a b"])
        ['srun', '-w', 'node-1', 'echo', 'a b']
        """
        text = shlex.join(argv)
        words: list[str] = []
        for word in self.words:
            if word == "{argv}":
                words += argv
            else:
                words.append(word.replace("{host}", host).replace("{command}", text))
        return words


def launch(
    launcher: Launcher,
    hosts: Sequence[str],
    argv: Sequence[str],
    *,
    timeout_s: float,
    at_once: int = 64,
    most_bytes: int = 1 << 30,
) -> Iterator[Outcome]:
    """Run `argv` on every host, `at_once` at a time; the outcomes as they come, one a host.

    Whoever leaves the iterator early ends what still runs. Raises LauncherError for a template without {host}
    and several hosts: all of them would be one.
    """
    if len(hosts) > 1 and not any("{host}" in word for word in launcher.words):
        raise LauncherError(f"the launcher has no {{host}} in it, and there are {len(hosts)} hosts")
    ending = threading.Event()
    # A host's answer may be long: no more of them wait to be taken than are asked at once.
    outcomes: queue.Queue[Outcome] = queue.Queue(maxsize=max(1, at_once))

    def ask(host: str) -> None:
        try:
            outcome = _run(host, launcher.command(host, argv), timeout_s, most_bytes, ending)
        except (OSError, MemoryError) as error:  # no place for what it answers
            why = getattr(error, "strerror", None) or str(error) or "no memory for its answer"
            outcome = Outcome(host, b"", why, 0.0)
        while not ending.is_set():
            try:
                outcomes.put(outcome, timeout=0.2)
                return
            except queue.Full:
                continue

    with ThreadPoolExecutor(max_workers=max(1, at_once)) as threads:
        try:
            for host in hosts:
                threads.submit(ask, host)
            for _ in hosts:
                yield outcomes.get()
        finally:
            ending.set()
            threads.shutdown(wait=True, cancel_futures=True)


def answer_line(output: bytes) -> bytes | None:
    """The line that is our own JSON, whatever a login shell says before and after it; None without one."""
    found = _ANSWER.search(output)
    return found[1] if found else None


def _run(
    host: str, command: Sequence[str], timeout_s: float, most_bytes: int, ending: threading.Event
) -> Outcome:
    started = time.monotonic()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as complaint:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=complaint,
                start_new_session=True,  # what it starts itself, as ssh its proxy, ends with it
            )
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            return Outcome(host, b"", f"{command[0]}: {why}", time.monotonic() - started)
        try:
            why = _wait(process, started + timeout_s, timeout_s, (output, most_bytes), complaint, ending)
        finally:
            _end(process)
        if why is None and process.returncode != 0:
            why = _words(complaint, process.returncode)
        output.seek(0)
        # Of what was cut off only the beginning is shown; many hosts may flood us at once.
        wanted = most_bytes if _size(output) <= most_bytes else min(most_bytes, _SHOWN_JUNK_BYTES)
        return Outcome(host, output.read(wanted), why, time.monotonic() - started)


def _wait(
    process: subprocess.Popen[bytes],
    deadline: float,
    timeout_s: float,
    output: tuple[IO[bytes], int],
    complaint: IO[bytes],
    ending: threading.Event,
) -> str | None:
    """Until the process ends; why it was given up, else None."""
    while True:
        try:
            process.wait(_LOOK_EVERY_S)
        except subprocess.TimeoutExpired:
            pass
        else:
            return None if _size(output[0]) <= output[1] else _too_much(output[1])
        if _size(output[0]) > output[1]:
            return _too_much(output[1])
        if _size(complaint) > _MOST_COMPLAINT_BYTES:
            return f"given up: more than {_MOST_COMPLAINT_BYTES} bytes of complaints"
        if time.monotonic() > deadline:
            return f"no answer within {timeout_s:g} s"
        if ending.is_set():
            return "not waited for"


def _too_much(most_bytes: int) -> str:
    return f"given up: it answered more than the {most_bytes} bytes allowed"


def _size(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that has not ended, and what it started; what it left on purpose is its own matter."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _words(complaint: IO[bytes], status: int) -> str:
    complaint.seek(max(0, _size(complaint) - 4096))
    lines = [it.strip() for it in complaint.read().decode("utf-8", "replace").splitlines() if it.strip()]
    how = f"ended by {_signal(-status)}" if status < 0 else f"ended with status {status}"
    return f"{how}: {lines[-1][:_SHOWN_COMPLAINT]}" if lines else how


def _signal(number: int) -> str:
    """Its name; those of real time have none but the first and the last."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
