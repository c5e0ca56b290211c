"""How are the cards and the network ports, host by host?

Those of which there is something to say, the worst first; the others are counted.
"""

from __future__ import annotations

from collections.abc import Iterator

from train_ledger.dash.page.host import host_cell
from train_ledger.dash.page.markup import Child, Safe, element, join, table
from train_ledger.dash.page.view import PageView
from train_ledger.ledger.hardware.records import GpuState, PortState
from train_ledger.render import duration, ranks_in_words

__all__ = ["hardware_part"]

_MOST_ROWS = 16
_CLOCK, _HEAT, _POWER = "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE"

_HEADINGS = ("host", "card", "", "says", "ranks", "SM clock", "°C", "W")

Told = tuple[int, str, str]
"""How bad it is (0 the worst), its word, and what it says."""


def hardware_part(view: PageView) -> Safe:
    """The table; a line where no host's hardware is read."""
    state = view.state
    if not state.gpus and not state.ports:
        none = "Not observed: nothing was told of a GPU or a port of any host."
        return join((element("h2", "hardware"), element("p", none, class_="dim")))
    of_gpus = sorted(((told, gpu) for gpu in state.gpus for told in _of_gpu(gpu, state.t)), key=_by_badness)
    of_ports = [(told, port) for port in state.ports for told in _of_port(port, state.t)]
    rows = [*(_gpu(*it) for it in of_gpus[:_MOST_ROWS]), *(_port(*it) for it in of_ports[:_MOST_ROWS])]
    hosts = {gpu.host for gpu in state.gpus} | {port.host for port in state.ports}
    counted = ", ".join((_counted(len(state.gpus), "GPU"), _counted(len(state.ports), "port")))
    counted = f" {counted} on {_counted(len(hosts), 'host')}"
    heading = element("h2", "hardware", element("span", counted, class_="dim"))
    if not rows:
        return join((heading, element("p", "Nothing to be seen of any of them.", class_="dim")))
    rest = max(0, len(of_gpus) - _MOST_ROWS) + max(0, len(of_ports) - _MOST_ROWS)
    more = element("p", f"and {rest} more, in the state as JSON", class_="dim") if rest else None
    return join((heading, table(_HEADINGS, rows, "hardware", stacked=True), more))


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _by_badness(pair: tuple[Told, GpuState]) -> tuple[int, str, int]:
    (badness, _, _), gpu = pair
    return badness, gpu.host, -1 if gpu.gpu is None else gpu.gpu


def _of_gpu(gpu: GpuState, t: float) -> Iterator[Told]:
    for xid in gpu.xids:
        if xid.level != "ignore":
            times = f" × {xid.count}" if xid.count > 1 else ""
            said = f"XID {xid.code}{times}, {duration(max(0.0, t - xid.last_t))} ago"
            yield (0, "page", said) if xid.level == "page" else (3, "record", said)
    if gpu.dbe_t is not None:
        yield 0, "page", f"memory error that could not be corrected, {duration(max(0.0, t - gpu.dbe_t))} ago"
    if gpu.low_since_t is not None:
        since = duration(max(0.0, t - gpu.low_since_t))
        yield 1, "slow", f"clock low for {since}" + (f": {gpu.low_why}" if gpu.low_why else "")
    if gpu.links_grown:
        grown = ", ".join(f"{name} +{by:g}" for name, by in sorted(gpu.links_grown.items()))
        yield 2, "link", grown
    if gpu.sbe_grown:
        yield 3, "record", f"{gpu.sbe_grown:g} corrected memory errors"


def _of_port(port: PortState, t: float) -> Iterator[Told]:
    if port.down_since_t is not None:
        yield 0, "page", f"link down for {duration(max(0.0, t - port.down_since_t))}"
    if port.grown:
        yield 2, "link", ", ".join(f"{name} +{by:g}" for name, by in sorted(port.grown.items()))


def _gpu(told: Told, gpu: GpuState) -> Safe:
    usual = "" if gpu.usual_mhz is None else f" of {gpu.usual_mhz:.0f}"
    clock = gpu.values.get(_CLOCK)
    card = f"GPU {gpu.gpu}" if gpu.gpu is not None else gpu.uuid or gpu.pci or "?"
    return _row(
        told,
        gpu.host,
        card,
        ranks_in_words(gpu.ranks),
        "–" if clock is None else f"{clock:.0f}{usual} MHz",
        _number(gpu.values.get(_HEAT)),
        _number(gpu.values.get(_POWER)),
    )


def _port(told: Told, port: PortState) -> Safe:
    name = port.device if port.port is None else f"{port.device}/{port.port}"
    return _row(told, port.host, name, "–", "–", "–", "–")


def _row(told: Told, host: str, card: str, *cells: Child) -> Safe:
    _, word, said = told
    chip = element("span", word, class_=f"chip {word}")
    first = (host_cell(host), element("td", card), element("td", chip), element("td", said, class_="whole"))
    told_of = zip((None, *_HEADINGS[5:]), cells, strict=True)
    rest = (element("td", cell, data_of=of, class_="none" if cell == "–" else None) for of, cell in told_of)
    return element("tr", *first, *rest)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}"
