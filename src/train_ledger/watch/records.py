"""What stays of an incident for the day after?"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import msgspec

from train_ledger import __version__
from train_ledger.answer import Diagnosis
from train_ledger.config import Config
from train_ledger.ledger import JournalError
from train_ledger.ops.postmortem import as_markdown, postmortem
from train_ledger.render import Made, Picture, as_html, as_json
from train_ledger.run_dir import RunDir, RunDirError, read_small, write_atomically

__all__ = ["kept_picture", "write_draft", "write_records"]

_LARGEST_BYTES = 2 << 20
_MOST_NODES, _MOST_EDGES = 100, 1000
"""Far more than a keeper draws: what is kept is drawn anew every second for whoever has the page open."""


def write_records(
    run_dir: RunDir, config: Config, incident: str, diagnosis: Diagnosis, picture: Picture | None = None
) -> Iterable[str]:
    """Write verdict, report and postmortem draft; one line for people about each, or why it is missing."""
    verdict = run_dir.incidents / f"{incident}.json"
    report = run_dir.reports / f"{incident}.html"
    try:
        write_atomically(verdict, as_json(diagnosis).encode())
        title = f"{run_dir.path.name}: {incident}"
        how = Made(
            "incident", shlex.join(["train-ledger", "watch", str(run_dir.path)]), __version__, time.time()
        )
        page = as_html(diagnosis, title=title, currency=config.cost.currency, picture=picture, made=how)
        write_atomically(report, page.encode())
        _keep_picture(_picture(run_dir, incident), picture)
        yield f"report {report}"
    except OSError as error:
        yield f"the report could not be written: {error}"
    yield write_draft(run_dir, config, incident)


def kept_picture(run_dir: RunDir, incident: object) -> Picture | None:
    """The picture that an earlier keeper drew of an incident; None where it kept none that can be read."""
    if not isinstance(incident, str) or Path(incident).name != incident:
        return None
    try:
        kept = read_small(_picture(run_dir, incident), limit_bytes=_LARGEST_BYTES)
        picture = msgspec.json.decode(kept, type=Picture)
    except (OSError, ValueError, RecursionError):  # a name that no file can have; what nests too deeply
        return None
    return picture if _is_sound(picture) else None


def _is_sound(picture: Picture) -> bool:
    """Whether edges lead from node to node, of not too many: who wrote it may not have been a keeper."""
    graph = picture.graph
    if graph is None:
        return True
    places = range(len(graph.nodes))
    is_small = len(graph.nodes) <= _MOST_NODES and len(graph.edges) <= _MOST_EDGES
    return is_small and all(it.start in places and it.end in places for it in graph.edges)


def _keep_picture(path: Path, picture: Picture | None) -> None:
    """Beside a verdict without one no earlier picture stays."""
    if picture is None:
        path.unlink(missing_ok=True)
    else:
        write_atomically(path, as_json(asdict(picture), indent=None).encode())


def _picture(run_dir: RunDir, incident: str) -> Path:
    return run_dir.incidents / f"{incident}.picture.json"


def write_draft(run_dir: RunDir, config: Config, incident: str) -> str:
    """Write the postmortem draft again from what the journal holds now; one line for people about it."""
    draft = run_dir.reports / f"{incident}.md"
    try:
        told = postmortem(run_dir, config, incident=incident, of_journal_alone=True)
        write_atomically(draft, as_markdown(told).encode())
    except (OSError, JournalError, RunDirError) as error:
        return f"the postmortem draft could not be written: {error}"
    return f"postmortem draft {draft}"
