"""`train-ledger coverage`: was every signal collected beforehand?"""

from __future__ import annotations

from train_ledger.cli.options import At, Html, Json, Run

__all__ = ["coverage"]


def coverage(run: Run, at: At = None, json: Json = False, html: Html = None) -> int:
    """Say what could not be told of a run tonight.

    For every cause that `diagnose` can name: which signals decide it, whether each arrives now, from how many
    ranks and hosts, and the setting, variable or command that gets what is missing. Exit status: 0 every
    cause could be told, 1 some could not, 3 nothing arrives.

    \b
    Example:
      train-ledger coverage runs/r42
      train-ledger coverage runs/r42 --json
    """
    from train_ledger import config
    from train_ledger.answer import to_json
    from train_ledger.cli.output import show, show_report, write_page
    from train_ledger.ops.coverage import coverage as coverage_of
    from train_ledger.ops.coverage import exit_code_of, report_of_coverage
    from train_ledger.render import as_json
    from train_ledger.run_dir import RunDir

    run_dir = RunDir.existing(run)
    answer = coverage_of(run_dir, config.load(run_dir), at=at)
    if html is not None:
        write_page(html, report_of_coverage(answer), "coverage", title=str(run), at=at)
    if json:
        show(as_json(to_json(answer)))
    else:
        show_report(report_of_coverage(answer))
    return exit_code_of(answer)
