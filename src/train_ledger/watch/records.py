"""What stays of an incident for the day after?"""

from __future__ import annotations

from collections.abc import Iterable

from train_ledger.answer import Diagnosis
from train_ledger.config import Config
from train_ledger.ops.postmortem import as_markdown, postmortem
from train_ledger.render import Picture, as_html, as_json
from train_ledger.run_dir import RunDir, RunDirError, write_atomically

__all__ = ["write_draft", "write_records"]


def write_records(
    run_dir: RunDir, config: Config, incident: str, diagnosis: Diagnosis, picture: Picture | None = None
) -> Iterable[str]:
    """Write verdict, report and postmortem draft; one line for people about each, or why it is missing."""
    verdict = run_dir.incidents / f"{incident}.json"
    report = run_dir.reports / f"{incident}.html"
    try:
        write_atomically(verdict, as_json(diagnosis).encode())
        title = f"{run_dir.path.name}: {incident}"
        page = as_html(diagnosis, title=title, currency=config.cost.currency, picture=picture)
        write_atomically(report, page.encode())
        yield f"report {report}"
    except OSError as error:
        yield f"the report could not be written: {error}"
    yield write_draft(run_dir, config, incident)


def write_draft(run_dir: RunDir, config: Config, incident: str) -> str:
    """Write the postmortem draft again from what the journal holds now; one line for people about it."""
    draft = run_dir.reports / f"{incident}.md"
    try:
        told = postmortem(run_dir, config, incident=incident, of_journal_alone=True)
        write_atomically(draft, as_markdown(told).encode())
    except (OSError, RunDirError) as error:
        return f"the postmortem draft could not be written: {error}"
    return f"postmortem draft {draft}"
