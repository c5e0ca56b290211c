"""A restart silences what follows it, and never the end of a page that was told before it."""

from __future__ import annotations

from pathlib import Path

from dash.promtool import NO, YES, counting, needs_promtool, node, replay, series, steady

STALL, RESTARTING = "TrainingStepStalled", "TrainingRestarting"
MARKED = [{"run": "r42", "paged": "before"}]


def restarting(from_minute: float, minutes: float = 40) -> dict[str, str]:
    values = f"{steady(0, from_minute)} {steady(1, minutes - from_minute)}"
    return series("train_run_state", values, state="restarting")


@needs_promtool
def test_a_restart_after_a_page_is_marked_until_that_page_is_over_and_told(tmp_path: Path) -> None:
    """Steps stop at 10 min and are paged; the next attempt begins at 13 min and takes no step."""
    moved = {
        "train_last_step_completed_timestamp_seconds": f"{counting(0, 10)} {steady(600, 3)} stale",
        "train_stall_threshold_seconds": f"{steady(90, 13)} {steady(1800, 27)}",
        "train_restart_total": f"{steady(0, 13)} {steady(1, 27)}",
        "train_attempt_started_timestamp_seconds": f"{steady(0.001, 13)} {steady(780, 27)}",
    }
    again = [{**it, "values": moved.get(it["series"].split("{")[0], it["values"])} for it in node(minutes=40)]
    replay(
        tmp_path,
        [*again, restarting(13)],
        {
            f"{STALL} at 12.5": YES,
            f"{STALL} at 17": YES,
            f"{STALL} at 19": NO,
            f"{RESTARTING} at 12.5": NO,
            f"{RESTARTING} at 13.5": MARKED,
            f"{RESTARTING} at 23": MARKED,
            f"{RESTARTING} at 25": YES,
            f"{RESTARTING} at 39": YES,
        },
    )


@needs_promtool
def test_a_restart_that_began_without_a_page_silences_to_its_end(tmp_path: Path) -> None:
    replay(
        tmp_path,
        [*node(stops=10, minutes=40), restarting(5)],
        {
            f"{RESTARTING} at 6": YES,
            f"{STALL} at 13": YES,
            f"{RESTARTING} at 13": YES,
            f"{RESTARTING} at 25": YES,
        },
    )
