"""Writes docs/states.md and its drawing from the tables of states and moves that the code runs on.

python tools/states_page.py            write the page
python tools/states_page.py --check    exit status 1 where it is not current
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from page import DOCS, table, write_or_check
from states_drawing import drawing

from train_ledger.answer import STATES
from train_ledger.ledger.machine import ORDER
from train_ledger.ledger.transitions import MOVES

PAGE = DOCS / "states.md"
DRAWING = DOCS / "states.svg"

_HEAD = """# The states of a run

<!-- Written by tools/states_page.py from transitions.py and machine.py of src/train_ledger/ledger. -->

A run is in one state at a time. Which one follows from what is known alone – steps, attempts, dead processes,
losses, GPUs –, so that a keeper that was killed comes to the same one. Thin arrows are made by the run or its
launcher and nobody need act; thick ones page; dotted ones somebody has to decide on. Numbers are the lines of
the table of moves. Drawn are the usual ways; the table has all.
"""
_AFTER = """\
`watch` writes each move that it sees into the journal, as `{"kind": "state_changed", "before": "stalled",
"state": "restarting", "move": "automatic", …}`; `move` is null where several moves lay between two looks, and
at the first look. `[respond] restart_command` is run only in states whose move to `restarting` is automatic:
out of `escalated`, `stopped` and `numeric_fault` a person starts the run. What "3" and "30 min" are is set by
`[alerts] restart_loop_count` and `restart_loop_window_s`.
"""
_RECOVERED = """## Is a recovery one?

When a new attempt has passed the step once reached, the journal gets one entry `recovered`:

| key | says |
|---|---|
| `resumed_step`, `reached` | the first step that was completed after the restart, and the one once reached |
| `redone_steps` | how many steps were done once more |
| `loss_joins_on` | whether the loss of those steps is what it was; null where it was not observed |
| `loss_difference`, `loss_tolerance` | the median difference of the two, and the largest that joins on |
| `data_agrees` | whether the data stands at each step where it stood; null where no line tells a position |
| `not_observed` | what could not be compared, and why |

The same weights, optimiser and data give the same loss but for the order of floating-point sums, which is
far below a hundredth of it. Other data at the same step changes it by about as much as one step differs from
the next; whether the data is the same is a question of its own. So the loss joins on where the median
difference is at most 1 % of the loss, or twice what the run's own loss usually changes from step to step,
whichever is more. An optimiser or weights that were not loaded lie well above that. Kept are the last
1024 lines before the restart and the first 1024 behind it, of the lowest rank that completes steps.
"""
_HOOKS = """## What hooks may do

`[respond] exclude_command` and `restart_command` act on the verdict of an open incident, each once. While
`dry_run` holds, which is the default, the journal and the terminal only say what they would do.

- `exclude_command` acts where the cause is of the node (`hardware.*`, `slow.straggler.clock`,
  `slow.straggler.link`), the confidence high, and one node named: never for what code did, never on several
  nodes at once.
- `restart_command` acts where the run is `stalled` by a cause `hang.*` or `hardware.*` of high confidence. A
  `hardware_fault` whose steps go on waits for the next checkpoint. With failed hardware and an
  `exclude_command`, that one has to have ended with 0 first. It never acts out of `escalated`, `stopped` or
  `numeric_fault`.

A hook is a list of words, run without a shell, beside the keeper. On its standard input it reads one JSON
object: `hook`, `run`, `run_path`, `incident`, `state`, `attempt`, `step`, `cause`, `confidence`, `ranks`,
`hosts`, `gpus` and the whole `diagnosis`. Nothing of a log is in its arguments. What it writes is kept in
`RUN/ledger/hooks/INCIDENT-HOOK.log`; its exit status and last line are journalled as `hook_done`. One that a
killed keeper had begun is not begun again.
"""
_PICTURE = f"![the states, and the moves between them]({DRAWING.name})\n"


def page() -> str:
    """The whole page."""
    states = [(f"`{state}`", STATES[state], ", ".join(_alerts(state))) for state in ORDER]
    moves = [
        (f"{number}", _states(move.before), f"`{move.after}`", move.kind, move.by, ", ".join(move.alerts))
        for number, move in enumerate(MOVES, 1)
    ]
    return "\n".join(
        (
            _HEAD,
            _PICTURE,
            "## States\n\nThe first that holds, from above, is the run's; where none does it is starting.\n",
            table(("state", "means", "alerts that belong to it"), states),
            "## Moves\n",
            table(("", "from", "to", "kind", "made by", "alerts"), moves),
            _AFTER,
            _RECOVERED,
            _HOOKS,
        )
    )


def _alerts(state: str) -> list[str]:
    return list(dict.fromkeys(alert for move in MOVES if move.after == state for alert in move.alerts))


def _states(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    drawn = write_or_check(DRAWING, drawing(MOVES), sys.argv[1:])
    sys.exit(write_or_check(PAGE, page(), sys.argv[1:]) or drawn)
