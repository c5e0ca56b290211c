"""What does the page answer to which request?"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from threading import Event
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from train_ledger.answer import SCHEMA
from train_ledger.config import Config
from train_ledger.dash.exposition import Exposition
from train_ledger.dash.page.document import document
from train_ledger.dash.page.guard import Guard
from train_ledger.dash.page.headline import headline
from train_ledger.dash.page.making import Making
from train_ledger.dash.page.overview import overview, overview_parts, together
from train_ledger.dash.page.packed import packed_answer
from train_ledger.dash.page.parts import parts
from train_ledger.dash.page.plots import (
    HistorySource,
    PlotError,
    curves_json,
    plotly_script,
    strips_json,
)
from train_ledger.dash.page.reports import report_of
from train_ledger.dash.page.stream import Stream
from train_ledger.dash.page.view import PageView
from train_ledger.fields import written_number

__all__ = ["RunPage", "app", "state_json"]

_HTML = "text/html; charset=utf-8"

_STATIC = {
    "page.css": "text/css; charset=utf-8",
    "plotly.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "plots.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}

_IN_THE_JOURNAL = frozenset({"of_incidents"})
"""Of a view what is told already."""

Source = Callable[[], PageView]


@dataclass(frozen=True, slots=True)
class RunPage:
    """What there is to show of one run.

    `source` is asked for the view, from a thread beside the server's; `history` is drawn beside it, where it
    is kept, and `reports` is the folder of what was written of incidents.
    """

    source: Source
    history: HistorySource | None = None
    reports: Path | None = None


def app(
    *pages: RunPage,
    loopback: bool = True,
    token: str | None = None,
    interval_s: float = 1.0,
    ending: Event | None = None,
) -> Starlette:
    """The page of a run as an ASGI application; of several runs one page with all, and one of each.

    `loopback` says that it is bound to the loopback, and then other host names are refused; with a `token`
    whoever has none is. Open pages are sent what changed every `interval_s`, until `ending` is set.
    """
    over, making = ending or Event(), Making()
    if len(pages) == 1:
        routes: list[BaseRoute] = _routes(pages[0], making, interval_s, over)
    else:
        routes = _routes_of_all(pages, making, interval_s, over)
    application = Starlette(routes=routes)
    application.add_middleware(Guard, loopback=loopback, token=token)
    return application


def _routes(run: RunPage, making: Making, interval_s: float, ending: Event) -> list[BaseRoute]:
    page = _Page(run, making)
    stream = Stream(page.parts, making, interval_s, ending)

    async def events(request: Request) -> Response:
        return stream.answer(request)

    return [
        Route("/", page.whole),
        Route("/events", events),
        Route("/api/state", page.state),
        Route("/api/history", page.curves),
        Route("/api/strips", page.strips),
        Route("/reports/{name}", report_of(run.reports)),
        Route("/metrics", page.metrics),
        *_files(),
    ]


def _routes_of_all(
    pages: Sequence[RunPage], making: Making, interval_s: float, ending: Event
) -> list[BaseRoute]:
    exposition = Exposition(Config())

    def rows() -> list[tuple[str, PageView]]:
        return [(f"runs/{number}/", page.source()) for number, page in enumerate(pages)]

    def metrics_of_all() -> str:
        return together(exposition.text_of_run(page.source().state) for page in pages)

    stream = Stream(lambda: (time.time(), overview_parts(rows())), making, interval_s, ending)

    async def whole(request: Request) -> Response:
        return Response(await making.made(lambda: overview(rows())), media_type=_HTML)

    async def events(request: Request) -> Response:
        return stream.answer(request)

    async def metrics(request: Request) -> Response:
        return PlainTextResponse(await making.made(metrics_of_all))

    return [
        Route("/", whole),
        Route("/events", events),
        Route("/metrics", metrics),
        *_files(),
        *(
            Mount(f"/runs/{number}", routes=_routes(page, making, interval_s, ending))
            for number, page in enumerate(pages)
        ),
    ]


async def _alive(request: Request) -> Response:
    return PlainTextResponse("alive\n")


def _files() -> list[BaseRoute]:
    """What every page has; /healthz is what a kubelet asks, which restarts whoever does not answer."""
    return [
        Route("/healthz", _alive),
        Route("/static/plotly.min.js", _plotly),
        *(Route(f"/static/{name}", _static(name, kind)) for name, kind in _STATIC.items()),
    ]


class _Page:
    def __init__(self, run: RunPage, making: Making) -> None:
        self._source = run.source
        self._making = making
        self._history = run.history
        self._exposition = Exposition(Config())

    async def whole(self, request: Request) -> Response:
        drawn = self._history is not None
        made = await self._making.made(lambda: document(self._source(), drawn=drawn))
        return Response(made, media_type=_HTML)

    async def state(self, request: Request) -> Response:
        made = await self._making.made(lambda: state_json(self._source()))
        return Response(made, media_type="application/json")

    async def curves(self, request: Request) -> Response:
        return await self._drawn(request, lambda source: curves_json(source, request.query_params))

    async def strips(self, request: Request) -> Response:
        return await self._drawn(request, strips_json)

    async def _drawn(self, request: Request, made: Callable[[HistorySource], str]) -> Response:
        """Beside the loop: whoever keeps the history may be reading, and other pages must not wait for it."""
        history = self._history
        if history is None:
            return PlainTextResponse("no history is kept here\n", status_code=404)
        try:
            return await asyncio.to_thread(
                lambda: packed_answer(request, made(history).encode(), "application/json")
            )
        except PlotError as error:
            return PlainTextResponse(f"{error}\n", status_code=400)

    async def metrics(self, request: Request) -> Response:
        return PlainTextResponse(
            await self._making.made(lambda: self._exposition.text_of_run(self._source().state))
        )

    def parts(self) -> tuple[float, Mapping[str, str]]:
        view = self._source()
        return view.state.t, parts(view)


def _static(name: str, kind: str) -> Callable[[Request], Response]:
    content = files("train_ledger.dash.page").joinpath("static", name).read_bytes()

    def answer(request: Request) -> Response:
        return Response(content, media_type=kind)

    return answer


def _plotly(request: Request) -> Response:
    """It is large and never changes while we run: the browser may keep it."""
    script = plotly_script()
    tag = f'"{len(script)}-{zlib.crc32(script):08x}"'
    headers = {"ETag": tag, "Cache-Control": "private, max-age=86400"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    answer = packed_answer(request, script, "text/javascript; charset=utf-8", keep=True)
    answer.headers.update(headers)
    return answer


def state_json(view: PageView) -> str:
    """All that the page knows, as JSON, with its first sentence as `verdict`."""
    first = headline(view)
    plain = {name: value for name, value in _plain(view).items() if name not in _IN_THE_JOURNAL}
    return json.dumps({"schema": SCHEMA, "verdict": first.text, "tone": first.tone, **plain}, allow_nan=False)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [_plain(item) for item in value]
    return written_number(value) if isinstance(value, float) else value
