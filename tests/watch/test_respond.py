"""First answers from ranks that answer, ranks that refuse and ranks that are silent."""

import json
import socket
import subprocess
import sys
import threading
import time

import pytest

from train_ledger.config import Config, Respond
from train_ledger.hang import stacks
from train_ledger.ledger import RankState, RunState
from train_ledger.run_dir import RunDir, write_atomically
from train_ledger.watch.respond import Collected, collect


@pytest.fixture
def run(tmp_path):
    return RunDir(tmp_path / "r42")


def a_state(*ranks):
    return RunState("r42", 1000.0, world_size=len(ranks), ranks={it.rank: it for it in ranks})


class Ranks(threading.Thread):
    """Answers the request for `what` as the ranks' monitors do."""

    def __init__(self, run, replies, what="dump"):
        super().__init__(daemon=True)
        self.run_dir, self.replies, self.what, self.asked = run, replies, what, None
        self.start()

    def run(self):
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            for path in self.run_dir.requests.glob(f"*-{self.what}.json"):
                self.asked = json.loads(path.read_bytes())
                for rank, reply in self.replies.items():
                    write_atomically(self.run_dir.reply(self.asked["id"], rank), json.dumps(reply).encode())
                return
            time.sleep(0.01)


def test_every_living_rank_is_asked_and_answers_are_told_apart(run, monkeypatch):
    monkeypatch.setattr("train_ledger.ops.asking.collect._GRACE_S", 0.3)  # once two have answered
    config = Config(respond=Respond(on_page=("dump",), dump_wait_s=60))
    ranks = Ranks(run, {0: {"ok": True, "path": "x"}, 1: {"ok": False, "error": "torch is not there"}})
    state = a_state(RankState(0), RankState(1), RankState(2), RankState(3, gone_t=9.0))
    taken = collect(run, config, state, "i", threading.Event())
    assert ranks.asked == {"id": "i-dump", "t": 1000.0, "do": "dump", "ranks": [0, 1, 2]}
    assert taken.dumped == (0,)
    assert taken.failed["dump", 1] == "torch is not there"
    assert taken.failed["dump", 2].startswith("no answer in")
    assert ("dump", 3) not in taken.failed


def test_a_rank_that_cannot_answer_is_not_waited_for_to_the_last(run):
    config = Config(respond=Respond(on_page=("dump",), dump_wait_s=60))
    Ranks(run, {rank: {"ok": True} for rank in range(3)})
    taken = collect(run, config, a_state(*map(RankState, range(4))), "i", threading.Event())
    assert taken.dumped == (0, 1, 2)
    assert taken.took_s < 40


def test_a_keeper_that_ends_waits_for_no_server(run, tmp_path):
    config = Config(respond=Respond(on_page=("dump",), dump_wait_s=60))
    ending = threading.Event()
    ending.set()
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(tmp_path / "server"))
        deaf.listen()
        began = time.monotonic()
        state = a_state(RankState(0, worker_server=f"unix:{tmp_path}/server"))
        taken = collect(run, config, state, "i", ending)
    assert time.monotonic() - began < 30
    assert taken.failed["dump", 0].startswith("no answer in ")


def test_stacks_are_taken_of_the_ranks_of_this_host(run):
    program = "import time\ndef where_it_stands():\n    print('there', flush=True)\n    time.sleep(600)\n"
    program += "where_it_stands()"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"there\n"
        config = Config(respond=Respond(on_page=("stacks",)))
        state = a_state(RankState(0, pid=process.pid), RankState(1, pid=1, host="elsewhere"))
        taken = collect(run, config, state, "i", threading.Event())
    finally:
        process.kill()
        process.communicate()
    assert taken.stacked == (0,), taken.failed
    found, _ = stacks.read([run.stacks()])
    assert stacks.stand_of(found[0]).frame.function == "where_it_stands"


def test_ranks_into_which_nobody_here_can_look_are_asked_where_they_stand(run):
    """Of a job on many hosts a page would name the rank, and not the line of its code."""
    config = Config(respond=Respond(on_page=("dump", "stacks"), dump_wait_s=2, stacks_wait_s=60))
    unasked = {"ok": False, "error": "this process has not imported torch.distributed"}
    Ranks(run, {0: {"ok": True}, 1: unasked, 2: {"ok": True}})
    refused = {"ok": False, "error": "No space left on device"}
    asking = Ranks(run, {0: {"ok": True}, 1: {"ok": True}, 2: refused}, "stacks")
    state = a_state(RankState(0, host="n1", pid=7), RankState(1), RankState(2), RankState(3, host="n2"))
    taken = collect(run, config, state, "i", threading.Event())
    assert asking.asked == {"id": "i-stacks", "t": 1000.0, "do": "stacks", "ranks": [0, 1, 2]}
    assert taken.stacked == (0, 1)
    assert taken.failed["stacks", 2] == "No space left on device"
    assert taken.failed["stacks", 3] == taken.failed["dump", 3]  # who is silent is not waited for twice
    assert taken.took_s < 40


def test_ranks_with_the_same_reason_are_told_together():
    failed = {("dump", 0): "silent", ("dump", 1): "silent", ("stacks", 1): "gone"}
    assert Collected((), (), failed, 1.0).missing == (
        "no dump of ranks 0-1: silent",
        "no stacks of rank 1: gone",
    )
