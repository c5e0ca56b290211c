"""`train-ledger ask`: a profile, or the allocator's snapshot, of living ranks."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from train_ledger.answer import ExitCode
from train_ledger.cli.options import Json, Run, seconds

if TYPE_CHECKING:
    from train_ledger.ops.asking.ask import Answers

__all__ = ["ask"]


class What(enum.StrEnum):
    """What a rank can be asked for by this verb; for dumps and stacks there are verbs of their own."""

    PROFILE = "profile"
    MEMORY_SNAPSHOT = "memory_snapshot"


def ask(
    run: Run,
    what: Annotated[What, typer.Argument(help="What for.", show_default=False)],
    ranks: Annotated[
        str, typer.Option(metavar="RANKS", help="These ranks, like 5,7-9; else rank 0.", show_default=False)
    ] = "0",
    steps: Annotated[int, typer.Option(min=1, max=100, help="Steps that a profile is of.")] = 3,
    record_history: Annotated[
        bool,
        typer.Option("--record-history", help="Record from now on where memory comes from, for the next."),
    ] = False,
    timeout_s: Annotated[
        float, typer.Option(parser=seconds, metavar="SECONDS", help="Seconds that ranks have to answer.")
    ] = 120.0,
    json: Json = False,
) -> int:
    """Ask living ranks for a profile or a memory snapshot.

    A profile is torch's, of the next steps, in RUN/traces; it slows those down, and the step after them while
    it is gathered, and torch may print a line or two of its own into the job's output. A snapshot is of
    CUDA's caching allocator, in RUN/memory_snapshots, for pytorch.org/memory_viz. Ranks without a monitor do
    not answer. Exit status: 0 all are there, 1 some are missing, 3 nobody answered.

    \b
    Example:
      train-ledger ask runs/r42 profile --ranks 5,7-9 --steps 5
      train-ledger ask runs/r42 memory_snapshot --ranks 5 --record-history
    """
    import time
    import uuid

    from train_ledger.cli.entries import rank_list
    from train_ledger.cli.run_wanted import run_to_write
    from train_ledger.ops.asking.ask import ask as ask_ranks

    run_dir = run_to_write(run, "ask", begun=True)
    options: dict[str, Any] = {"steps": steps} if what is What.PROFILE else {"record_history": record_history}
    request_id = f"{what}-{time.time():.0f}-{uuid.uuid4().hex[:8]}"
    answers = ask_ranks(run_dir, request_id, rank_list(ranks), {"do": str(what), **options}, timeout_s)
    _tell(answers, what, json=json)
    if not answers.failed:
        return ExitCode.NOTHING_WRONG
    return ExitCode.TROUBLE if answers.files else ExitCode.CANNOT_TELL


def _tell(answers: Answers, what: What, *, json: bool) -> None:
    from json import dumps

    from train_ledger.cli.output import show
    from train_ledger.render import harmless, ranks_in_words

    if json:
        files = {str(rank): str(path) for rank, path in answers.files.items()}
        failed = {str(rank): why for rank, why in answers.failed.items()}
        show(dumps({"schema": 1, "what": str(what), "files": files, "failed": failed}))
        return
    lines = [f"rank {rank}: {path}" for rank, path in answers.files.items()]
    by_why: dict[str, list[int]] = {}
    for rank, why in answers.failed.items():
        by_why.setdefault(why, []).append(rank)
    lines += [f"{ranks_in_words(some)}: {why}" for why, some in by_why.items()]
    show("\n".join(harmless(line) for line in lines))
