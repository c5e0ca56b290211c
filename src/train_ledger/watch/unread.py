"""What of a run and its journal could not be read, in words for people?"""

from __future__ import annotations

from train_ledger.sources import RunFacts

__all__ = ["unread_in_words"]


def unread_in_words(files: RunFacts, journal_lines: int, not_understood: int) -> tuple[str, ...]:
    """A line each for files, for what lay there before any keeper came, and for the journal.

    `journal_lines` of it could not be read, `not_understood` entries were of another kind than they say.
    """
    counts = [f"{count} × {reason}" for reason, count in sorted(files.bad_lines.items())]
    what = "log" if files.by_logs else "signal"
    said = [f"{what} lines or files not read: {', '.join(counts)}"] if counts else []
    if files.left_out_bytes:
        said.append(
            f"{files.left_out_bytes / 1e6:,.1f} MB of earlier {what} lines, which no keeper read: "
            "what is counted and what is usual begin behind them"
        )
    if journal_lines:
        said.append(f"{journal_lines} lines of the journal")
    if not_understood:
        said.append(f"{not_understood} entries of the journal that another version may have written")
    return tuple(said)
