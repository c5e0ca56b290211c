"""Which reports of incidents can be opened from the page?

Files that the keeper wrote, by names that it gives and no others. A report has its own policy in it and may
do no more here than where it lies on a disk.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from train_ledger.run_dir import read_small

__all__ = ["report_of"]

_NAME = re.compile(r"[0-9TZ]{1,20}-[A-Za-z]{1,64}(?:-[0-9]{1,4})?\.(html|md)\Z", re.ASCII)
_LARGEST_BYTES = 64 << 20
_KINDS = {"html": "text/html; charset=utf-8", "md": "text/plain; charset=utf-8"}
_POLICY = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def report_of(folder: Path | None) -> Callable[[Request], Response]:
    """Answers with the report that is asked for by its name; None: there are none."""

    def answer(request: Request) -> Response:
        name = request.path_params["name"]
        kind = _NAME.match(name)
        if folder is None or kind is None:
            return PlainTextResponse("there is no such report\n", status_code=404)
        try:
            content = read_small(_own(folder, name), limit_bytes=_LARGEST_BYTES)
        except OSError:
            return PlainTextResponse("there is no such report (yet)\n", status_code=404)
        headers = {"Content-Security-Policy": _POLICY}
        return Response(content, media_type=_KINDS[kind[1]], headers=headers)

    return answer


def _own(folder: Path, name: str) -> Path:
    """The report, which is no link: whoever may write into the folder could show any file with it.

    Raises FileNotFoundError where it is one.
    """
    path = folder / name
    if path.is_symlink():
        raise FileNotFoundError(path)
    return path
