"""What is deployed: which run, which hosts, whom to call?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from pathlib import Path
from urllib.parse import urlsplit

from train_ledger.config import Config
from train_ledger.run_dir import RunDir, parsed_json, read_small

__all__ = ["DeployError", "Settings", "Target", "hosts_of", "targets_of", "web_address"]

EXPORT_PORT = 9466
WATCH_PORT = 9467
DCGM_PORT = 9400
NODE_PORT = 9100

_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_NO_ADDRESS = re.compile(r"[\s\"<>\\^`{|}]|%(?![0-9A-Fa-f]{2})")
"""What no address holds but as %20: Alertmanager would not start with it."""

_NAMESPACE = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


class DeployError(Exception):
    """What was asked for cannot be deployed; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a sidecar answers."""

    host: str
    port: int = EXPORT_PORT


@dataclass(frozen=True, slots=True)
class Settings:
    """`run` is the run directory as the nodes see it; `webhook` takes Alertmanager's pages, "" for none.

    Raises DeployError for what no file could hold.
    """

    config: Config = field(default_factory=Config)
    run: Path = Path("/runs/r42")
    targets: tuple[Target, ...] = (Target("127.0.0.1"),)
    webhook: str = ""
    runbook_url: str = ""
    namespace: str = "monitoring"

    def __post_init__(self) -> None:
        if not self.run.is_absolute() or not str(self.run).isprintable() or self.run.parent == self.run:
            raise DeployError(f"{str(self.run)!r} is no path that can stand in a unit; name an absolute one")
        if not _NAMESPACE.fullmatch(self.namespace):
            raise DeployError(f"{self.namespace!r} is no name of a namespace: small letters, digits and '-'")

    @property
    def runbook(self) -> str:
        """Where people find the runbook."""
        return self.runbook_url or self.config.prometheus.runbook_url


def web_address(text: str) -> str:
    """`text` where it is an address that a program can post to or a person can open; raises DeployError."""
    try:
        parts = urlsplit(text)
        named = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is no number, a bracket that is not closed
        named = False
    if not named or _NO_ADDRESS.search(text) or not text.isprintable():
        raise DeployError(f"{text!r} is no address of the web; wanted is one like https://host/path")
    return text


def targets_of(text: str) -> tuple[Target, ...]:
    """The targets of "node001,node002:9466,[fd00::1]:9466"; raises DeployError.

    >>> targets_of("node001,node002:9500")
    (Target(host='node001', port=9466), Target(host='node002', port=9500))
    """
    found = tuple(_target(part.strip()) for part in text.split(",") if part.strip())
    if not found:
        raise DeployError("no target is named; wanted is HOST:PORT,HOST:PORT,…")
    return found


def _target(text: str) -> Target:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(EXPORT_PORT)
    number = int(port) if port.isascii() and port.isdecimal() and len(port) < 6 else 0
    if not _is_host(host) or not 0 < number < 65536:
        raise DeployError(f"{text!r} is no target; wanted is HOST:PORT, like node001:{EXPORT_PORT}")
    return Target(host, number)


def _is_host(text: str) -> bool:
    if not text.startswith("["):
        return _HOST.fullmatch(text) is not None
    try:
        return text.endswith("]") and "%" not in text and bool(IPv6Address(text[1:-1]))
    except ValueError:
        return False


def hosts_of(run_dir: RunDir) -> tuple[str, ...]:
    """The hosts of a run's ranks by its ranks.jsonl, in their order; none where it has none yet.

    Raises DeployError for a line that cannot be read.
    """
    try:
        lines = read_small(run_dir.ranks_jsonl).splitlines()
    except FileNotFoundError:
        return ()
    return tuple(dict.fromkeys(_hosts(run_dir.ranks_jsonl, lines)))


def _hosts(path: Path, lines: Iterable[bytes]) -> Iterable[str]:
    for number, line in enumerate(lines, 1):
        try:
            said = parsed_json(line)
        except ValueError:
            said = None
        host = said.get("host") if isinstance(said, dict) else None
        if not isinstance(host, str) or not _is_host(host):
            raise DeployError(f"{path}:{number}: names no host; say with --targets where the sidecars answer")
        yield host
