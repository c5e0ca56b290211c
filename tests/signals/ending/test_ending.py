"""However a rank ends, it says so, leaves what it knows, and ends."""

from __future__ import annotations

import json
import pickle
import signal
import subprocess
import time
from pathlib import Path

import pytest

from signals.scripts import begin, events, ready, run_to_end, signal_lines, wait_for

GLOO = """
os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
import torch, torch.distributed as dist
store = dist.HashStore()
dist.init_process_group("gloo", store=store, rank=0, world_size=1)
dist.all_reduce(torch.ones(2))
"""
HANGS = {
    "sleep": "time.sleep(60)",
    "lock": "lock = threading.Lock(); lock.acquire(); lock.acquire()",
    "read": "reader, writer = os.pipe(); os.read(reader, 1)",
    "spin": "while True: pass",
    "join": "thread = threading.Thread(target=time.sleep, args=(60,)); thread.start(); thread.join()",
    "exit": "threading.Thread(target=time.sleep, args=(60,)).start(); sys.exit()",
}


AT_ONCE_S = 20.0
"""What hangs would hang for a minute; within one second on a machine that has a core for it."""


def ended_by_sigterm(process: subprocess.Popen[str]) -> float:
    """Seconds from SIGTERM to death, which must be the default action's."""
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    try:
        assert process.wait(60) == -signal.SIGTERM
    finally:
        process.kill()
    return time.monotonic() - began


@pytest.mark.parametrize("hang", HANGS.values(), ids=HANGS)
def test_a_rank_that_hangs_dies_of_sigterm_at_once(tmp_path: Path, hang: str) -> None:
    process = begin(tmp_path, f"monitor.step(7)\nprint('there', flush=True)\n{hang}")
    ready(process)
    time.sleep(0.1)
    assert ended_by_sigterm(process) < AT_ONCE_S
    (told,) = events(tmp_path, "signal")
    assert (told["number"], told["step"]) == (signal.SIGTERM, 7)
    assert not events(tmp_path, "run_end")


def test_a_rank_in_a_collective_leaves_a_dump_and_dies_of_sigterm(tmp_path: Path) -> None:
    waiting = """
os.environ |= {"MASTER_ADDR": "127.0.0.1"}
import torch, torch.distributed as dist
store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
trains = os.getpid()
if os.fork() == 0:
    store = dist.TCPStore("127.0.0.1", store.port)
    dist.init_process_group("gloo", store=store, rank=1, world_size=2)
    until_s = time.monotonic() + 60
    while os.getppid() == trains and time.monotonic() < until_s: time.sleep(0.1)
    os._exit(0)
dist.init_process_group("gloo", store=store, rank=0, world_size=2)
print("there", flush=True)
dist.all_reduce(torch.ones(2))
"""
    process = begin(tmp_path, waiting)
    ready(process)
    time.sleep(0.3)
    assert ended_by_sigterm(process) < AT_ONCE_S
    dump = pickle.loads((tmp_path / "comm_traces" / "rank_0").read_bytes())
    assert [entry["profiling_name"] for entry in dump["entries"]] == ["gloo:all_reduce"]
    assert [entry["retired"] for entry in dump["entries"]] == [False]


def test_a_disk_that_hangs_does_not_keep_a_rank_from_dying(tmp_path: Path) -> None:
    hung_disk = "monitor.logger._sink.write = lambda data: time.sleep(60)\nmonitor.step(1)\n"
    process = begin(tmp_path, hung_disk + "print('there', flush=True)\ntime.sleep(60)")
    ready(process)
    time.sleep(0.5)
    assert ended_by_sigterm(process) < AT_ONCE_S


def test_a_disk_that_hangs_does_not_keep_a_run_from_ending(tmp_path: Path) -> None:
    began = time.monotonic()
    hung_disk = "monitor.logger._sink.write = lambda data: time.sleep(60)\nmonitor.step(1)\n"
    assert run_to_end(tmp_path, hung_disk).returncode == 0
    assert time.monotonic() - began < 45, "it waited for the disk"


def test_a_handler_of_the_programs_own_stays(tmp_path: Path) -> None:
    own = """
import signal
def own(number, frame):
    print("own handler", flush=True)
    sys.exit(3)
signal.signal(signal.SIGTERM, own)
print("there", flush=True)
time.sleep(120)
"""
    process = begin(tmp_path, own)
    ready(process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 3
    assert ready(process) == "own handler"
    assert [told["number"] for told in events(tmp_path, "signal")] == [signal.SIGTERM]


def test_a_wakeup_descriptor_of_the_programs_own_stays(tmp_path: Path) -> None:
    script = """
monitor.close()
import signal, socket
reader, writer = socket.socketpair()
writer.setblocking(False)
signal.set_wakeup_fd(writer.fileno())
monitor = train_ledger.start(monitor.run_dir.path)
assert signal.set_wakeup_fd(-1) == writer.fileno()
assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
"""
    assert run_to_end(tmp_path, script).returncode == 0
    assert "wake-up descriptor of its own" in events(tmp_path, "warning")[-1]["message"]


def test_a_descriptor_taken_later_does_not_make_the_rank_immune(tmp_path: Path) -> None:
    taken = """
import signal, socket
reader, writer = socket.socketpair()
writer.setblocking(False)
signal.set_wakeup_fd(writer.fileno())
print("there", flush=True)
time.sleep(120)
"""
    process = begin(tmp_path, taken)
    ready(process)
    assert ended_by_sigterm(process) < AT_ONCE_S
    assert events(tmp_path, "signal")


@pytest.mark.parametrize("lives", [False, True])
def test_a_loop_that_handles_signals_does_not_make_a_rank_immune_that_hangs_some_steps_later(
    tmp_path: Path, lives: bool
) -> None:
    """asyncio takes the descriptor while it handles a signal, and leaves none behind."""
    hangs = f"""
import asyncio, ctypes, signal
loop = asyncio.new_event_loop()
loop.add_signal_handler(signal.SIGUSR2, print)
if not {lives}:
    loop.remove_signal_handler(signal.SIGUSR2)
for step in range(100, 125):
    monitor.step(step)
    time.sleep(0.05)
lock = ctypes.create_string_buffer(64)
ctypes.CDLL(None).pthread_mutex_lock(lock)
print("there", flush=True)
ctypes.CDLL(None).pthread_mutex_lock(lock)
"""
    process = begin(tmp_path, hangs)
    ready(process)
    assert ended_by_sigterm(process) < AT_ONCE_S
    assert bool(events(tmp_path, "signal")) is not lives
    assert [it["about"] for it in events(tmp_path, "warning")] == (["signals"] if lives else [])


def test_off_the_main_thread_signals_are_left_alone_and_it_is_said(tmp_path: Path) -> None:
    script = """
monitor.close()
thread = threading.Thread(target=train_ledger.start, args=(monitor.run_dir.path,))
thread.start()
thread.join()
import signal
assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
"""
    assert run_to_end(tmp_path, script).returncode == 0
    assert "main thread" in events(tmp_path, "warning")[-1]["message"]


def test_a_forked_child_has_signals_of_its_own(tmp_path: Path) -> None:
    process = begin(
        tmp_path,
        """
import signal
for delay_s in [0, 0, 0, 0.0002, 0.0005, 0.001, 0.1]:  # a signal may come while the child is not yet itself
    child = os.fork()
    if child == 0:
        time.sleep(30)
    time.sleep(delay_s)
    os.kill(child, signal.SIGTERM)
    assert os.waitpid(child, 0)[1] == signal.SIGTERM
assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()
if os.fork() == 0:
    sys.exit(0)
os.wait()
""",
    )
    assert process.wait(90) == 0
    assert [line["event"] for line in events(tmp_path)] == [
        "run_start",
        "phase_start",
        "phase_end",
        "run_end",
    ]


def test_the_end_of_a_run(tmp_path: Path) -> None:
    assert run_to_end(tmp_path, "monitor.step(1, loss=2.0)").returncode == 0
    lines = signal_lines(tmp_path)
    assert [line.get("event", line.get("step")) for line in lines] == [
        "run_start",
        "phase_start",
        "phase_end",
        1,
        "run_end",
    ]
    assert not list((tmp_path / "stacks").iterdir())


def test_an_exception_is_told_with_its_phase_and_is_no_end_of_the_run(tmp_path: Path) -> None:
    script = """
monitor.step(4)
with monitor.phase("forward"):
    raise ValueError("shapes do not fit")
"""
    ended = run_to_end(tmp_path, script)
    assert ended.returncode == 1
    assert "ValueError: shapes do not fit" in ended.stderr
    (told,) = events(tmp_path, "exception")
    assert (told["type"], told["message"], told["phase"]) == ("ValueError", "shapes do not fit", "forward")
    assert told["step"] == 4
    assert not events(tmp_path, "run_end")


def test_an_exception_that_cannot_say_itself_is_told_too(tmp_path: Path) -> None:
    script = """
class Broken(Exception):
    def __str__(self):
        raise KeyError
raise Broken
"""
    assert run_to_end(tmp_path, script).returncode == 1
    (told,) = events(tmp_path, "exception")
    assert told["type"] == "Broken"


def test_a_run_that_ends_while_the_recorder_is_warmed_ends_well(tmp_path: Path) -> None:
    assert run_to_end(tmp_path, GLOO + "time.sleep(1.1 - time.process_time() % 0.1)").returncode == 0
    assert events(tmp_path, "run_end")


def test_an_exception_leaves_a_dump(tmp_path: Path) -> None:
    ended = run_to_end(tmp_path, GLOO + "raise RuntimeError('connection closed by peer')")
    assert ended.returncode == 1
    dump = pickle.loads((tmp_path / "comm_traces" / "rank_0").read_bytes())
    assert dump["entries"][0]["profiling_name"] == "gloo:all_reduce"


def test_an_exception_of_another_thread_is_told_and_the_run_goes_on(tmp_path: Path) -> None:
    script = """
def work():
    raise KeyError("gone")
thread = threading.Thread(target=work, name="prefetch")
thread.start()
thread.join()
"""
    assert run_to_end(tmp_path, script).returncode == 0
    (told,) = events(tmp_path, "exception")
    assert (told["type"], told["thread"], told["fatal"]) == ("KeyError", "prefetch", False)
    assert events(tmp_path, "run_end")


def test_an_exception_that_is_caught_is_none(tmp_path: Path) -> None:
    script = """
try:
    with monitor.phase("compile"):
        raise ValueError
except ValueError:
    pass
"""
    assert run_to_end(tmp_path, script).returncode == 0
    assert not events(tmp_path, "exception")
    assert events(tmp_path, "run_end")


def test_a_with_block_sees_an_exit_code(tmp_path: Path) -> None:
    assert run_to_end(tmp_path, "with monitor:\n    sys.exit(5)").returncode == 5
    assert [told["type"] for told in events(tmp_path, "exception")] == ["SystemExit"]
    assert not events(tmp_path, "run_end")


def test_a_with_block_left_by_an_exit_code_says_it(tmp_path: Path) -> None:
    run_to_end(tmp_path, "with monitor:\n    sys.exit(7)")
    (told,) = events(tmp_path, "exception")
    assert (told["type"], told["message"]) == ("SystemExit", "7")


@pytest.mark.parametrize("clean", ["sys.exit()", "sys.exit(0)", "sys.exit(None)"])
def test_a_with_block_left_by_a_clean_exit_is_a_clean_end(tmp_path: Path, clean: str) -> None:
    assert run_to_end(tmp_path, f"with monitor:\n    {clean}").returncode == 0
    assert not events(tmp_path, "exception")
    assert events(tmp_path, "run_end")


def test_no_exception_is_taken_for_an_earlier_one(tmp_path: Path) -> None:
    script = """
def work(n):
    raise ValueError(f"thread {n}")
monitor.step(1)
for n in range(5):
    thread = threading.Thread(target=work, args=(n,))
    thread.start()
    thread.join()
    del thread
raise ValueError("main")
"""
    assert run_to_end(tmp_path, script).returncode == 1
    told = [line["message"] for line in events(tmp_path, "exception")]
    assert told == [*(f"thread {n}" for n in range(5)), "main"]
    assert not events(tmp_path, "run_end")


def test_what_a_thread_died_of_and_the_main_thread_after_it_is_fatal(tmp_path: Path) -> None:
    script = """
error = ValueError("both")
def work():
    raise error
thread = threading.Thread(target=work)
thread.start()
thread.join()
raise error
"""
    assert run_to_end(tmp_path, script).returncode == 1
    assert [line.get("fatal", True) for line in events(tmp_path, "exception")] == [False, True]
    assert not events(tmp_path, "run_end")


def test_an_exception_that_names_a_file_which_is_no_utf8_is_read(tmp_path: Path) -> None:
    assert run_to_end(tmp_path, "raise ValueError(os.fsdecode(b'caf\\xe9'))").returncode == 1
    (told,) = events(tmp_path, "exception")
    assert "caf\\udce9" in told["message"]
    told["message"].encode()


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_a_process_of_multiprocessing_that_raises_is_no_clean_end(tmp_path: Path, method: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        f"""
import multiprocessing
import train_ledger

def train():
    train_ledger.start({str(tmp_path / "run")!r}).step(1)
    raise ValueError("in a child")

if __name__ == "__main__":
    process = multiprocessing.get_context({method!r}).Process(target=train)
    process.start()
    process.join()
"""
    )
    run_to_end(tmp_path / "other", f"import subprocess; subprocess.run([sys.executable, {str(script)!r}])")
    assert [told["message"] for told in events(tmp_path / "run", "exception")] == ["in a child"]
    assert not events(tmp_path / "run", "run_end")


def test_a_fatal_signal_leaves_the_stacks(tmp_path: Path) -> None:
    ended = run_to_end(tmp_path, "def all_reduce():\n    os.abort()\nall_reduce()")
    assert ended.returncode == -signal.SIGABRT
    assert "in all_reduce" in (tmp_path / "stacks" / "rank_0.txt").read_text()
    assert not events(tmp_path, "run_end")


def test_stacks_taken_from_outside_do_not_take_the_fatal_ones_away(tmp_path: Path) -> None:
    process = begin(tmp_path, "print('there', flush=True)\ntime.sleep(60)")
    ready(process)
    path = tmp_path / "stacks" / "rank_0.txt"
    new = path.with_suffix(".new")
    new.write_text("by py-spy\n")
    new.replace(path)
    of_process = Path(f"/proc/{process.pid}/fd")
    wait_for(lambda: any(it.exists() and it.samefile(path) for it in of_process.iterdir()))
    process.send_signal(signal.SIGABRT)
    assert process.wait(60) == -signal.SIGABRT
    assert path.read_text().startswith("by py-spy\nFatal Python error: Aborted")


def test_faulthandler_stays_with_a_program_that_uses_it(tmp_path: Path) -> None:
    script = "import faulthandler\nassert faulthandler.is_enabled()\nos.abort()"
    ended = run_to_end(tmp_path, script, {"PYTHONFAULTHANDLER": "1"})
    assert "Fatal Python error: Aborted" in ended.stderr
    assert not (tmp_path / "stacks" / "rank_0.txt").exists()


def test_sigusr1_leaves_dump_and_stacks_and_the_run_goes_on(tmp_path: Path) -> None:
    process = begin(tmp_path, GLOO + "print('there', flush=True)\ntime.sleep(60)")
    try:
        ready(process)
        process.send_signal(signal.SIGUSR1)
        reply = tmp_path / "requests" / "sigusr1.rank_0.json"
        wait_for(lambda: reply.exists() and json.loads(reply.read_bytes())["path"].endswith(".txt"))
        assert b"Thread" in (tmp_path / "stacks" / "rank_0.txt").read_bytes()
        assert pickle.loads((tmp_path / "comm_traces" / "rank_0").read_bytes())["entries"][0]["frames"]
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    "how", ["raise RuntimeError('step failed') from error", "raise RuntimeError('x') from None"]
)
def test_what_a_program_made_of_an_error_does_not_hide_where_it_came_from(tmp_path: Path, how: str) -> None:
    script = f"try:\n    raise OSError('Connection closed by peer')\nexcept OSError as error:\n    {how}"
    assert run_to_end(tmp_path, script).returncode == 1
    (told,) = events(tmp_path, "exception")
    assert told["type"] == "RuntimeError"
    assert told["origin"] == "OSError: Connection closed by peer"
