import json
import threading
from dataclasses import replace

import pytest

from train_ledger.chaos import fleet
from train_ledger.config import FIRST_ANSWERS, Alerts, Config, Notify, Respond
from train_ledger.ledger import journal
from train_ledger.watch import Keeper
from train_ledger.watch import keeper as keeper_module
from train_ledger.watch.clock import RunClock
from train_ledger.watch.console import Console
from train_ledger.watch.respond import respond
from waiting import wait_until


class Clock:
    def __init__(self, t):
        self.t = t

    def __call__(self):
        return self.t


class Watched:
    """A keeper of a recorded run whose clock the test moves."""

    def __init__(self, made, tmp_path, t):
        self.made = made
        self.clock = Clock(t)
        self.said = []
        self.told = tmp_path / "told.jsonl"
        command = ("sh", "-c", f"cat >> {self.told}; echo >> {self.told}")
        self.config = Config(
            alerts=Alerts(),
            notify=Notify(command=command),
            respond=Respond(on_page=FIRST_ANSWERS, dump_wait_s=0.2),
        )
        self.keeper = self.start()

    def start(self):
        return Keeper(self.made.run_dir, self.config, Console(self.said.append), RunClock(self.clock))

    def turn_until(self, done, turns=400):
        """So many turns of a tenth of a second; then the clock stands, and what runs beside is waited for."""
        left = iter(range(turns))

        def turned():
            self.keeper.turn()
            if done():
                return True
            if next(left, None) is not None:
                self.clock.t += 0.1
            return False

        try:
            wait_until(turned, 120.0)
        except AssertionError as error:
            raise AssertionError(f"{error}; said {self.said}") from None

    def kinds(self):
        return [entry["kind"] for entry in journal.read(self.made.run_dir.journal).entries]

    def entries(self, kind):
        return [e for e in journal.read(self.made.run_dir.journal).entries if e["kind"] == kind]

    def messages(self):
        return [json.loads(line) for line in self.told.read_text().splitlines() if line.strip()]


@pytest.fixture
def hung(tmp_path):
    made = fleet.write(tmp_path / "r42", fault="exception", culprit=5, hosts=2, ranks_per_host=4)
    watched = Watched(made, tmp_path, made.t)
    yield watched
    watched.keeper.close()


def test_a_hang_is_paged_once_with_the_culprit_in_its_title(hung):
    hung.turn_until(lambda: "notification_done" in hung.kinds())
    (page,) = hung.messages()
    assert page["title"] == "r42: TrainingStepStalled – culprit: rank 5 (hang.rank_died)"
    assert page["level"] == "page"
    assert page["details"]["ranks"] == [5]


def test_what_is_decided_is_journalled_in_order(hung):
    hung.turn_until(lambda: "notification_done" in hung.kinds())
    order = [
        "keeper_started",
        "state_changed",
        "alert_fired",
        "incident_opened",
        "response_started",
        "response_done",
        "verdict",
        "notification_intended",
        "notification_done",
    ]
    assert [kind for kind in hung.kinds() if kind in order] == order


def test_every_entry_has_the_keys_that_the_journal_s_table_says(hung):
    hung.turn_until(lambda: "notification_done" in hung.kinds())
    for entry in journal.read(hung.made.run_dir.journal).entries:
        assert tuple(entry) == ("t", "kind", *journal.KINDS[entry["kind"]]), entry


def test_the_incident_is_in_the_journal_with_wall_time_gpu_hours_and_cost(hung):
    hung.turn_until(lambda: "verdict" in hung.kinds())
    impact = hung.entries("verdict")[0]["diagnosis"]["impact"]
    assert impact["wall_s"] > 100
    assert impact["gpu_hours"] == pytest.approx(impact["wall_s"] * 8 / 3600)
    assert impact["cost"] == pytest.approx(impact["gpu_hours"] * 2.5)


def test_verdict_report_and_draft_lie_in_the_ledger(hung):
    hung.turn_until(lambda: "notification_done" in hung.kinds())
    incident = hung.entries("incident_opened")[0]["incident"]
    verdict = json.loads((hung.made.run_dir.incidents / f"{incident}.json").read_text())
    assert verdict["ranks"] == [5]
    draft = (hung.made.run_dir.reports / f"{incident}.md").read_text()
    assert "hung at step" in draft
    assert "page: delivered" in draft
    assert "<html" in (hung.made.run_dir.reports / f"{incident}.html").read_text()


def test_another_keeper_goes_on_without_a_second_page(hung):
    hung.turn_until(lambda: "notification_done" in hung.kinds())
    hung.keeper.close()
    hung.keeper = hung.start()
    for _ in range(20):
        hung.keeper.turn()
        hung.clock.t += 1
    assert len(hung.messages()) == 1
    for kind in ("alert_fired", "incident_opened", "verdict", "notification_intended"):
        assert len(hung.entries(kind)) == 1, kind


def test_a_keeper_killed_between_alert_and_page_still_pages(hung):
    """Cut the journal after each of its first entries, as a kill at that moment would have."""
    hung.turn_until(lambda: "incident_opened" in hung.kinds())
    hung.keeper.close()
    lines = hung.made.run_dir.journal.read_bytes().splitlines(keepends=True)
    cut = next(number for number, line in enumerate(lines) if b'"incident_opened"' in line)
    hung.made.run_dir.journal.write_bytes(b"".join(lines[:cut]))
    hung.keeper = hung.start()
    hung.turn_until(lambda: "notification_done" in hung.kinds())
    assert len(hung.messages()) == 1


def test_a_healthy_run_pages_nobody(tmp_path):
    made = fleet.write(tmp_path / "r42", hosts=2, ranks_per_host=4)
    watched = Watched(made, tmp_path, made.t + 1000)
    for _ in range(5):
        watched.keeper.turn()
    watched.keeper.close()
    assert watched.keeper.state.finished
    assert set(watched.kinds()) == {"keeper_started", "state_changed"}


def test_without_an_address_the_verdict_still_comes_and_says_that_nobody_was_told(tmp_path):
    made = fleet.write(tmp_path / "r42", fault="exception", culprit=5, hosts=2, ranks_per_host=4)
    watched = Watched(made, tmp_path, made.t)
    watched.config = Config(respond=Respond(on_page=FIRST_ANSWERS, dump_wait_s=0.2))
    watched.keeper.close()
    watched.keeper = watched.start()
    watched.turn_until(lambda: watched.keeper.is_told)
    watched.keeper.close()
    assert any("nobody is told" in line for line in watched.said)
    assert watched.keeper.diagnosis.ranks == (5,)


def test_where_each_rank_runs_is_gathered_and_what_others_wrote_there_is_kept(tmp_path):
    made = fleet.write(tmp_path / "r42", fault="hang", hosts=2, ranks_per_host=4)
    made.run_dir.ranks_jsonl.write_text('{"rank": 3, "rack": "r7", "t": 1.0, "host": "old"}\nnot ours\n')
    watched = Watched(made, tmp_path, made.t)
    watched.keeper.turn()
    watched.keeper.close()
    lines = made.run_dir.ranks_jsonl.read_text().splitlines()
    assert lines[0] == "not ours"
    ranks = {entry["rank"]: entry for entry in map(json.loads, lines[1:])}
    assert sorted(ranks) == list(range(8))
    assert (ranks[3]["rack"], ranks[3]["host"], ranks[5]["host"]) == ("r7", "node000", "node001")


def test_an_answer_that_fails_does_not_hold_up_the_page(tmp_path):
    made = fleet.write(tmp_path / "r42", fault="exception", culprit=5, hosts=2, ranks_per_host=4)
    made.run_dir.stacks().parent.mkdir(exist_ok=True)
    watched = Watched(made, tmp_path, made.t)
    made.run_dir.requests.write_text("a file where a folder is wanted")
    watched.turn_until(lambda: "notification_done" in watched.kinds())
    watched.keeper.close()
    assert len(watched.entries("response_failed")) == 1
    (page,) = watched.messages()
    assert page["title"] == "r42: TrainingStepStalled"


@pytest.mark.parametrize("jump_s", [600.0, -600.0])
def test_a_clock_that_jumps_on_rank_0_s_host_pages_nobody(tmp_path, jump_s):
    made = fleet.write(tmp_path / "r42", hosts=1, ranks_per_host=2, steps=100, fault="slow_rank")
    for _, path in made.run_dir.signal_files():
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        jumped = [{**line, "t": line["t"] + (jump_s if line.get("step", 0) > 40 else 0)} for line in lines]
        path.write_text("".join(json.dumps(line) + "\n" for line in jumped))
    watched = Watched(made, tmp_path, made.t + jump_s + 2)
    for _ in range(3):
        watched.keeper.turn()
    watched.keeper.close()
    assert watched.keeper.state.state == "running"
    assert "alert_fired" not in watched.kinds()
    assert watched.keeper.state.stalled_for_s < 10


def go_on(made, t, *, attempt, steps, then_silent):
    """The ranks are started again, go on for some steps and stand still once more."""
    for rank in range(made.world_size):
        lines = [
            {"t": t, "rank": rank, "attempt": attempt, "event": "run_start", "world_size": 8, "host": "h"}
        ]
        lines += [
            {"t": t + n, "step": n, "rank": rank, "attempt": attempt, "step_time_s": 1.0} for n in steps
        ]
        with made.run_dir.signals_of(rank).open("a") as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines))
    return t + max(steps) + then_silent


def test_a_restarted_run_that_stands_still_again_is_looked_at_and_paged_again(hung):
    """Within the alert's keep_firing_for, so that the incident is still open."""
    hung.turn_until(lambda: "notification_done" in hung.kinds())
    hung.clock.t += 20
    hung.keeper.turn()
    hung.clock.t = go_on(hung.made, hung.clock.t, attempt=1, steps=range(40, 90), then_silent=200)
    hung.turn_until(lambda: len(hung.entries("notification_done")) == 2)
    first, again = hung.messages()
    assert (first["level"], again["level"]) == ("page", "page")
    assert again["title"].startswith("r42: stands still again at step 89, attempt 1")
    assert [entry["place"] for entry in hung.entries("verdict")] == [[0, 50], [1, 89]]
    assert len(hung.entries("incident_opened")) == 1
    hung.keeper.close()
    hung.keeper = hung.start()
    for _ in range(10):
        hung.keeper.turn()
        hung.clock.t += 1
    assert len(hung.messages()) == 2


def test_that_it_stood_again_is_told_though_it_goes_on_before_all_is_found_out(hung, monkeypatch):
    may_end = threading.Event()

    def slow(*asked):
        assert may_end.wait(120)
        return respond(*asked)

    hung.turn_until(lambda: "notification_done" in hung.kinds())
    monkeypatch.setattr("train_ledger.watch.desk.respond", slow)
    hung.clock.t = go_on(hung.made, hung.clock.t, attempt=1, steps=range(40, 90), then_silent=200)
    hung.turn_until(lambda: len(hung.entries("response_started")) == 2)
    hung.clock.t = go_on(hung.made, hung.clock.t, attempt=1, steps=range(90, 100), then_silent=1)
    hung.keeper.turn()
    may_end.set()
    hung.turn_until(lambda: len(hung.entries("notification_done")) == 2)
    assert hung.messages()[1]["title"].startswith("r42: stands still again at step 89, attempt 1")
    assert [entry["place"] for entry in hung.entries("verdict")] == [[0, 50], [1, 89]]


def test_what_is_found_out_after_the_incident_closed_is_still_in_the_journal(hung, monkeypatch):
    may_end = threading.Event()

    def slow(*asked):
        assert may_end.wait(120)
        return respond(*asked)

    monkeypatch.setattr("train_ledger.watch.desk.respond", slow)
    hung.turn_until(lambda: "response_started" in hung.kinds())
    hung.clock.t = go_on(hung.made, hung.clock.t, attempt=1, steps=range(40, 90), then_silent=1)
    for rank in range(hung.made.world_size):
        with hung.made.run_dir.signals_of(rank).open("a") as file:
            file.write(json.dumps({"t": hung.clock.t, "rank": rank, "attempt": 1, "event": "run_end"}) + "\n")
    hung.keeper.turn()
    hung.clock.t += 3600
    hung.turn_until(lambda: "incident_closed" in hung.kinds())
    assert "verdict" not in hung.kinds()
    may_end.set()
    hung.turn_until(lambda: "verdict" in hung.kinds())
    assert not [it for it in hung.entries("notification_intended") if "again" in it["notification"]]


def test_another_keeper_goes_on_without_reading_all_again(hung):
    hung.turn_until(lambda: "notification_done" in hung.kinds())
    before = hung.keeper.state
    hung.keeper.close()
    hung.keeper = hung.start()
    hung.keeper.turn()
    after = hung.keeper.state
    assert (after.step, after.attempts, after.last_step_t) == (
        before.step,
        before.attempts,
        before.last_step_t,
    )
    assert hung.keeper._files.read_bytes < 1000


def test_a_history_too_large_to_read_is_said_to_be_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(keeper_module, "_WHOLE_BYTES", 1000)
    made = fleet.write(tmp_path / "r42", hosts=2, ranks_per_host=4, steps=2000)
    watched = Watched(made, tmp_path, made.t)
    for _ in range(5):
        watched.keeper.turn()
    (entry,) = watched.entries("history_left_out")
    assert entry["left_out_bytes"] > 10_000
    assert "earlier signal lines, which no keeper read" in watched.keeper.not_read[-1]
    watched.keeper.close()


def test_a_run_json_that_comes_later_names_the_run_in_messages_and_state(tmp_path):
    """A keeper that starts with the job is there before rank 0 has written run.json."""
    made = fleet.write(tmp_path / "r42", fault="exception", culprit=5, hosts=2, ranks_per_host=4)
    written = made.run_dir.read_run()
    made.run_dir.run_json.unlink()
    watched = Watched(made, tmp_path, made.t)
    made.run_dir.merge_run({**written, "run": "big"})
    watched.turn_until(lambda: watched.messages() if watched.told.exists() else False)
    watched.keeper.close()
    assert watched.keeper.state.run == "big"
    assert watched.keeper.state.world_size == 8
    assert "big" in json.dumps(watched.messages()[0])


def test_nothing_is_asked_of_a_run_until_somebody_asks_for_it(tmp_path):
    made = fleet.write(tmp_path / "r42", fault="exception", culprit=5, hosts=2, ranks_per_host=4)
    watched = Watched(made, tmp_path, made.t)
    watched.keeper.close()
    watched.config = replace(watched.config, respond=Respond())
    watched.keeper = watched.start()
    watched.keeper.turn()
    watched.turn_until(lambda: watched.told.exists() and watched.messages())
    (page,) = watched.messages()
    assert page["body"].splitlines()[-1].startswith(f"next: train-ledger respond {made.run_dir.path}")
    assert "response_started" not in watched.kinds()
    assert not list(made.run_dir.requests.glob("*"))
    watched.turn_until(lambda: "notification_done" in watched.kinds())
    assert list(made.run_dir.reports.glob("*.md"))  # the draft is written all the same
    watched.clock.t = go_on(made, watched.clock.t, attempt=1, steps=range(40, 90), then_silent=200)
    watched.turn_until(lambda: len(watched.messages()) == 2)
    assert watched.messages()[1]["title"].startswith("r42: stands still again at step 89, attempt 1")
    watched.keeper.close()


def test_a_recovery_is_journalled_once_with_how_it_went_and_ends_the_incident(hung):
    hung.turn_until(lambda: "notification_done" in hung.kinds())
    hung.clock.t = go_on(hung.made, hung.clock.t, attempt=1, steps=range(40, 90), then_silent=0)
    hung.keeper.turn()
    (entry,) = hung.entries("recovered")
    told = entry["recovery"]
    assert (told["resumed_step"], told["reached"], told["redone_steps"]) == (40, 50, 11)
    assert any("past step 50 again, 11 steps done once more" in line for line in hung.said)
    moves = [(it["before"], it["state"], it["move"]) for it in hung.entries("state_changed")]
    assert moves == [(None, "stalled", None), ("stalled", "running", "automatic")]
    hung.keeper.close()
    hung.keeper = hung.start()
    for _ in range(40):
        hung.clock.t = go_on(hung.made, hung.clock.t, attempt=1, steps=range(90, 91), then_silent=0)
        hung.keeper.turn()
    assert len(hung.entries("recovered")) == 1


def test_hooks_act_on_the_verdict_and_the_page_says_so(tmp_path):
    made = fleet.write(tmp_path / "r42", fault="hang", culprit=5, hosts=2, ranks_per_host=4)
    fell_off_the_bus(made, 5)
    watched = Watched(made, tmp_path, made.t)
    watched.keeper.close()
    does = {
        it: ("sh", "-c", f"cat > '{tmp_path}/{it}.json'; echo {it} done") for it in ("exclude", "restart")
    }
    hooked = Respond(("diagnose",), exclude_command=does["exclude"], restart_command=does["restart"])
    watched.config = replace(watched.config, respond=replace(hooked, dry_run=False))
    watched.keeper = watched.start()
    watched.turn_until(lambda: len(watched.entries("hook_done")) == 2 and watched.keeper.is_told)
    watched.keeper.close()
    (page,) = watched.messages()
    assert page["title"] == "r42: GpuXidError – culprit: rank 5 (hardware.xid)"
    assert page["body"].splitlines()[-2:] == [
        "exclude_command is run: hardware.xid on node001, confidence high",
        "restart_command waits: the node is being left out first",
    ]
    told = json.loads((tmp_path / "restart.json").read_text())
    assert (told["hook"], told["ranks"], told["hosts"]) == ("restart", [5], ["node001"])
    kinds = [it for it in watched.kinds() if it == "verdict" or it.startswith("hook_")]
    assert kinds == ["verdict", "hook_decided", "hook_decided", "hook_done", "hook_decided", "hook_done"]
    assert any("exclude_command ended with 0: exclude done" in line for line in watched.said)


def fell_off_the_bus(made, rank):
    """The kernel of the rank's node says so of its GPU."""
    start = json.loads(made.run_dir.signals_of(rank).read_text().splitlines()[0])
    pci = start["pci"].rsplit(".", 1)[0]
    made.run_dir.hardware.mkdir()
    said = f"NVRM: Xid (PCI:{pci}): 79, pid=7, GPU has fallen off the bus."
    log = made.run_dir.hardware / f"{start['host']}.kern.log"
    log.write_text(f"{made.fault_t:.3f} {start['host']} kernel: {said}\n")
