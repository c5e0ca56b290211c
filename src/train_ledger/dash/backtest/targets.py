"""What would Prometheus have read at a scrape, of each target?

Every host has a sidecar, which knows its own ranks alone and whose clock is its host's; the keeper tells what
is of the run; dcgm-exporter and node_exporter tell what was recorded of them. All texts are made by what
makes them in earnest.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping
from typing import Any

from train_ledger.config import Config
from train_ledger.dash.backtest.replay import Known
from train_ledger.dash.exposition import Exposition
from train_ledger.dash.metric_text import labels
from train_ledger.facts import HardwareReading
from train_ledger.ledger import Fold, RunState

__all__ = ["Sidecar", "Targets"]

_HEAD = "\n# HELP "
_TIMES = ("_timestamp_seconds", "_clock_seconds")
_READING_HOLDS_S = 60.0
"""So long what an exporter told is taken for what it still tells, where nobody looked again."""

_ONE_LOOK_S = 5.0
"""Readings of one look at all cards of a host lie no further apart."""


class _Target:
    """Turns the text of a target into samples by their full names; only `wanted` metrics are taken.

    Times are told as seconds since `origin_t`, where promtool's clock reads 0.
    """

    def __init__(self, instance: str, job: str, wanted: Container[str], origin_t: float) -> None:
        self.instance = instance
        self._own = labels(instance=instance, job=job)[1:-1]
        self._wanted = wanted
        self._origin_t = origin_t
        self._names: dict[str, str] = {}
        self._read: dict[str, tuple[str, dict[str, float]]] = {}

    def samples(self, text: str) -> dict[str, float]:
        found: dict[str, float] = {}
        for part in f"\n{text}".split(_HEAD):
            name = part[: part.find(" ")]
            if name not in self._wanted:
                continue
            before = self._read.get(name)
            if before is None or before[0] != part:
                before = self._read[name] = (part, self._family(name, part))
            found.update(before[1])
        return found

    def _family(self, name: str, part: str) -> dict[str, float]:
        origin_t = self._origin_t if name.endswith(_TIMES) else 0.0
        lines = (line.rpartition(" ") for line in part.split("\n")[1:] if line and line[0] != "#")
        return {self.full_name(series): float(value) - origin_t for series, _, value in lines}

    def full_name(self, series: str) -> str:
        """The series as Prometheus stores it, with the labels of its target."""
        known = self._names.get(series)
        if known is None:
            name, _, told = series.partition("{")
            others = f",{told[:-1]}" if len(told) > 1 else ""
            known = self._names[series] = f"{name}{{{self._own}{others}}}"
        return known


class Sidecar:
    """`train-ledger export` on one host."""

    def __init__(
        self,
        host: str,
        run: str,
        config: Config,
        run_json: Mapping[str, Any],
        target: _Target,
    ) -> None:
        self.target = target
        self._run = labels(run=run)
        self._fold = Fold(run, config, run_json, is_part=bool(host))
        self._exposition = Exposition(config)
        self._lead_s = 0.0

    def add(self, known: Known) -> None:
        self._lead_s = known.lead_s
        known.fold_into(self._fold)

    def scrape(self, t: float) -> dict[str, float]:
        clock_t = t + self._lead_s
        text = self._exposition.text(self._fold.state(clock_t))
        about = (("clock_seconds", clock_t), ("poll_age_seconds", 0.0), ("ready", 1.0))
        itself = "".join(
            f"# HELP train_exporter_{name} .\ntrain_exporter_{name}{self._run} {value!r}\n"
            for name, value in about
        )
        return self.target.samples(text + itself)


class _Others:
    """dcgm-exporter and node_exporter of one host, by their newest readings.

    Readings that do not say by what they were made are by these: it is their names that they have.
    """

    def __init__(self, host: str, wanted: Container[str], origin_t: float) -> None:
        self._host = host
        self._dcgm = _Target(f"{host}:9400", "dcgm", wanted, origin_t)
        self._node = _Target(f"{host}:9100", "node", wanted, origin_t)
        self._wanted = wanted
        self._looked_t: dict[str, float] = {}
        self._newest: dict[tuple[object, ...], tuple[float, dict[str, float]]] = {}

    def add(self, t: float, reading: HardwareReading) -> None:
        if reading.gpu is not None and reading.by in ("dcgm", ""):
            own = labels(
                gpu=reading.gpu, UUID=reading.uuid, device=f"nvidia{reading.gpu}", Hostname=self._host
            )
            self._take(t, self._dcgm, "", own, reading, ("gpu", reading.gpu))
        elif reading.device is not None and reading.by in ("sysfs", ""):
            own = labels(device=reading.device, port=reading.port)
            self._take(t, self._node, "node_infiniband_", own, reading, (reading.device, reading.port))

    def _take(
        self,
        t: float,
        target: _Target,
        prefix: str,
        own: str,
        reading: HardwareReading,
        card: tuple[object, ...],
    ) -> None:
        values = {
            target.full_name(f"{prefix}{name}{own}"): value
            for name, value in reading.values.items()
            if f"{prefix}{name}" in self._wanted
        }
        self._newest[(target.instance, *card)] = (t, values)
        self._looked_t[target.instance] = t

    def scrape(self, t: float) -> Iterator[tuple[str, dict[str, float]]]:
        """(instance, samples) of each that has told anything."""
        by_instance: dict[str, dict[str, float]] = {}
        for (instance, *_), (read_t, values) in self._newest.items():
            of_instance = by_instance.setdefault(str(instance), {})
            is_seen = self._looked_t[str(instance)] - read_t <= _ONE_LOOK_S
            if is_seen and t - read_t <= _READING_HOLDS_S:
                of_instance.update(values)
        yield from by_instance.items()


class Targets:
    """All targets of a run; a host's are there from the first that was known of it."""

    def __init__(
        self,
        run: str,
        config: Config,
        run_json: Mapping[str, Any],
        *,
        hosts: Collection[str],
        wanted: Container[str],
        origin_t: float,
    ) -> None:
        self._made = (run, config, run_json)
        self._hosts = frozenset(hosts) or frozenset({""})
        self._wanted = wanted
        self._origin_t = origin_t
        self._sidecars: dict[str, Sidecar] = {}
        self._others: dict[str, _Others] = {}
        self._keeper = _Target("keeper:9467", "train-ledger-keeper", wanted, origin_t)
        self._exposition = Exposition(config)

    def add(self, known: Known) -> None:
        """A statement becomes known to the sidecar of its host, or to all where it names none."""
        host = known.what.host
        for name in self._hosts if host is None or host not in self._hosts else (host,):
            if name not in self._sidecars:
                target = _Target(f"{name or 'node'}:9466", "train-ledger", self._wanted, self._origin_t)
                self._sidecars[name] = Sidecar(name, *self._made, target)
            self._sidecars[name].add(known)
        if isinstance(known.what, HardwareReading):
            name = known.what.host
            if name not in self._others:
                self._others[name] = _Others(name, self._wanted, self._origin_t)
            self._others[name].add(known.t, known.what)

    def scrape(self, state: RunState) -> Iterator[tuple[str, dict[str, float]]]:
        """(instance, samples by their full names) of every target, when the whole run is as in `state`."""
        for sidecar in self._sidecars.values():
            yield sidecar.target.instance, sidecar.scrape(state.t)
        yield self._keeper.instance, self._keeper.samples(self._exposition.text_of_run(state))
        for others in self._others.values():
            yield from others.scrape(state.t)
