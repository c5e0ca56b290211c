"""`train-ledger read`: for people and for scripts."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from rights import needs_locks, train_ledger_without_rights
from train_ledger.cli import app

FIELDS = ("kind", "t", "step", "rank", "host", "attempt", "source")
OOM = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total"


def line(step: int, *, minute: int = 5, loss: str = "2.500000E+00") -> str:
    front = f" [2026-02-03 04:{minute:02d}:{step % 60:02d}] iteration {step:8d}/   90000"
    return (
        f"{front} | consumed samples: {step * 64} | "
        f"elapsed time per iteration (ms): 1000.0 | learning rate: 1.500000E-04 | lm loss: {loss} | "
        "grad norm: 1.250 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


def run(*arguments: str | Path, stdin: str = "") -> tuple[int, str, str]:
    ended = CliRunner().invoke(app, ["read", *map(str, arguments)], input=stdin, catch_exceptions=False)
    return ended.exit_code, ended.stdout, ended.stderr


def facts(stdout: str) -> list[dict[str, Any]]:
    return [json.loads(it) for it in stdout.splitlines()]


def log(folder: Path, text: str, name: str = "train.log") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def in_summary(path: Path, label: str) -> str:
    """What stands behind a label of the summary of one file."""
    lines = (it.strip() for it in run(path)[1].splitlines())
    return next((it.removeprefix(label).strip() for it in lines if it.startswith(f"{label} ")), "")


def test_each_fact_is_one_line_of_json_with_the_same_keys(tmp_path: Path) -> None:
    path = log(tmp_path, line(1) + line(2, loss="NaN") + f"{OOM}\n")
    status, stdout, stderr = run(path, "--json")
    told = facts(stdout)
    assert (status, stderr) == (1, "")
    assert [it["kind"] for it in told] == ["step", "step", "fault", "fault"]
    assert all(set(FIELDS) <= set(it) for it in told)
    assert [it["fault"] for it in told if it["kind"] == "fault"] == ["nan_suspected", "oom"]
    assert (told[0]["step"], told[0]["loss"], told[0]["source"]) == (1, 2.5, f"{path}:1")
    assert told[1]["loss"] == "NaN"
    assert (told[3]["rank"], told[3]["t"], told[3]["local_gpu"]) == (3, None, 3)


def test_facts_of_one_kind_and_some_of_what_they_tell(tmp_path: Path) -> None:
    path = log(tmp_path, line(1) + line(2) + f"{OOM}\n")
    _, stdout, _ = run(path, "--json", "--only", "step", "--fields", "loss, grad_norm")
    assert [set(it) - set(FIELDS) for it in facts(stdout)] == [{"loss", "grad_norm"}] * 2
    _, stdout, _ = run(path, "--json", "--only", "fault")
    assert [it["fault"] for it in facts(stdout)] == ["oom"]


def test_the_standard_input_is_a_log_too() -> None:
    status, stdout, _ = run("-", "--json", stdin=line(1) + line(2))
    assert (status, [it["source"] for it in facts(stdout)]) == (0, ["-:1", "-:2"])


def test_the_summary_says_what_it_is_and_how_far_it_went(tmp_path: Path) -> None:
    again = "".join(line(step, minute=9) for step in range(11, 15))
    path = log(tmp_path, "".join(map(line, range(1, 13))) + again + "words\n" * 84)
    status, stdout, _ = run(path)
    assert status == 0
    assert stdout.startswith("nothing wrong in 1 file: 16 lines of steps")
    assert "Megatron" in stdout
    assert "100; 84 of them tell nothing" in stdout
    assert "steps 1–12" in stdout
    assert "steps 11–14, 2 of them done again" in stdout


def test_only_what_one_asks_for_first_is_said_to_be_not_seen(tmp_path: Path) -> None:
    text = line(1) + line(2)
    assert in_summary(log(tmp_path, text), "not seen") == "throughput"
    assert (
        in_summary(log(tmp_path, text.replace("grad norm", "other")), "not seen") == "grad_norm, throughput"
    )
    told = text.replace("\n", " throughput per GPU (TFLOP/s/GPU): 410.5 |\n")
    assert in_summary(log(tmp_path, told), "not seen") == ""


def test_what_was_skipped_is_counted_and_what_was_held_out_is_told(tmp_path: Path) -> None:
    skipping = line(2).replace("skipped iterations:   0", "skipped iterations:   3")
    held_out = " validation loss at iteration {} | lm loss value: {}E+00 | lm loss PPL: 9.0E+00 | \n"
    told = ((1, line(1), 2.75), (2, skipping, 2.25), (3, line(3), 2.5))
    path = log(tmp_path, "".join(text + held_out.format(step, loss) for step, text, loss in told))
    assert in_summary(path, "skipped") == "3 steps"
    assert in_summary(path, "val_loss") == "2.75 at first, 2.5 at last, 2.25 at least"
    overflow = (
        "[2026-02-03 04:05:06,789] [INFO] [loss_scaler.py:188:update_scale] [deepspeed] OVERFLOW! Rank {} "
        "Skipping step. Attempted loss scale: 1024, reducing to 512\n"
    )
    path = log(tmp_path, line(1) + line(2) + "".join(overflow.format(it) for it in (0, 1, 0, 1, 0)))
    assert in_summary(path, "skipped") == "3 overflows told"


def test_trouble_stands_before_the_files(tmp_path: Path) -> None:
    stdout = run(log(tmp_path, line(1) + f"{OOM}\n"))[1]
    assert stdout.index("\ntrouble, as it was told\n") < stdout.index(f"\n{tmp_path}")


def test_trouble_that_several_files_tell_says_how_many(tmp_path: Path) -> None:
    for name in ("a.log", "b.log"):
        log(tmp_path, line(1) + f"{OOM}\n", name)
    assert f"(2 times in 2 files, first at {tmp_path}/a.log:2)" in run(tmp_path)[1]


def test_each_of_many_files_is_one_line(tmp_path: Path) -> None:
    for number in range(12):
        log(tmp_path, line(1) + line(number + 2), f"job-{number:02}.log")
    stdout = run(tmp_path)[1]
    shown = [it for it in stdout.splitlines() if ".log: " in it]
    assert len(shown) == 12
    assert shown[3].endswith("job-03.log: Megatron; steps 1–5; loss 2.5 at first, 2.5 at last")
    assert "attempt 0" not in stdout


def test_the_worst_xid_stands_first(tmp_path: Path) -> None:
    told = [
        (31, "0000:1a:00", "Ch 8"),
        (43, "0000:1a:00", "Ch 8"),
        (64, "0000:3b:00", "Row remap"),
        (149, "0000:5e:00", "NETIR Nonfatal XC0"),
        (149, "0000:5e:00", "NETIR Fatal XC0"),
        (79, "0000:86:00", "GPU has fallen off the bus."),
    ]
    text = "".join(f"NVRM: Xid (PCI:{pci}): {code}, pid=7, name=python, {said}\n" for code, pci, said in told)
    stdout = run(log(tmp_path, text))[1]
    assert stdout.startswith(
        "trouble in 1 file: XID 79 of GPU 0000:86:00 (fell off the bus: it no longer answers"
    )
    points = [it.split()[2] for it in stdout.splitlines() if it.startswith("  - XID")]
    assert points == ["79", "64", "149", "31", "43", "149"]


def test_an_xid_that_a_crash_leaves_behind_is_not_the_cause(tmp_path: Path) -> None:
    left = "NVRM: Xid (PCI:0000:1a:00): 43, pid=7, name=python, Ch 00000008\n"
    fell = "NVRM: Xid (PCI:0000:86:00): 79, pid=7, name=python, GPU has fallen off the bus.\n"
    first = "trouble in 1 file: "
    assert run(log(tmp_path, f"{left}{OOM}\n"))[1].startswith(f"{first}oom on rank 3")
    assert run(log(tmp_path, f"{fell}{OOM}\n"))[1].startswith(f"{first}XID 79")
    assert run(log(tmp_path, left))[1].startswith(f"{first}XID 43")


def test_who_reports_a_rank_that_did_not_come_is_not_accused_of_it(tmp_path: Path) -> None:
    text = "[rank0]: [Rank 0]: Ranks 2, 3 failed to pass monitoredBarrier in 30000 ms\n"
    _, stdout, _ = run(log(tmp_path, text))
    assert stdout.startswith("trouble in 1 file: desync told by rank 0\n")
    assert "ranks 2-3 of the group did not come" in stdout


def test_the_summary_names_each_trouble_once_and_what_to_run_next(tmp_path: Path) -> None:
    timeouts = "".join(
        f"[rank{rank}]:[E ProcessGroupNCCL.cpp:5] [Rank {rank}] Watchdog caught collective operation "
        f"timeout: "
        "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600044 milliseconds before "
        "timing out.\n"
        for rank in range(8)
    )
    path = log(tmp_path, line(1) + line(2) + timeouts)
    status, stdout, _ = run(path)
    assert status == 1
    assert stdout.startswith("trouble in 1 file: watchdog_timeout on ranks 0-7\n")
    assert "sequence number 7, ALLREDUCE (8 times, first at" in stdout
    assert f"train-ledger hang --logs {path}" in stdout
    assert f"train-ledger read {path} --json --only fault" in stdout


def test_the_first_line_says_what_the_rank_of_the_root_cause_raised(tmp_path: Path) -> None:
    path = log(
        tmp_path,
        "[rank0]: Traceback (most recent call last):\n"
        '[rank0]:   File "/x/a.py", line 5, in train\n'
        "[rank0]: RuntimeError: [pair.cc:553] Connection closed by peer [127.0.0.1]:3881\n"
        "[rank1]: Traceback (most recent call last):\n"
        '[rank1]:   File "/x/a.py", line 4, in train\n'
        f"[rank1]: ValueError: no such sample: {'7' * 200}\n",
    )
    first, *_ = run(path)[1].splitlines()
    assert first.startswith("trouble in 1 file: exception on rank 1 (ValueError: no such sample: 77")
    assert first.endswith("7…), and 1 more kind of trouble")


def test_what_nobody_in_particular_raised_is_what_the_root_cause_did(tmp_path: Path) -> None:
    trace = 'Traceback (most recent call last):\n  File "/x/a.py", line 4, in <module>\n'
    root = (
        "Root Cause (first observed failure):\n[0]:\n  time      : 2026-02-03_04:05:06\n  host      : n1\n"
        "  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: 12)\n  error_file: <N/A>\n"
    )
    first, *_ = run(log(tmp_path, f"{trace}ModuleNotFoundError: No module named 'x'\n{root}"))[1].splitlines()
    assert first.startswith(
        "trouble in 1 file: exception on rank 1 (ModuleNotFoundError: No module named 'x')"
    )


def test_what_ended_a_rank_is_trouble_in_our_own_signals_too(tmp_path: Path) -> None:
    (tmp_path / "signals").mkdir()
    steps = "".join(f'{{"t":{step},"step":{step},"rank":1,"loss":2.5}}\n' for step in range(1, 9))
    raised = '{"t":9.5,"rank":1,"event":"exception","type":"ValueError","message":"bad sample"'
    path = tmp_path / "signals" / "rank_00001.jsonl"
    path.write_text(f'{steps}{raised},"thread":"saver","fatal":false}}\n')
    status, stdout, _ = run(tmp_path)
    assert status == 0
    assert "after an exception that is no trouble" in stdout
    path.write_text(f'{steps}{raised}}}\n{{"t":9.6,"rank":1,"event":"signal","number":15}}\n')
    status, stdout, _ = run(tmp_path)
    assert status == 1
    assert stdout.startswith("trouble in 1 file: exception on rank 1 (ValueError: bad sample), and 1 more")
    assert "signal on rank 1, SIGTERM" in stdout
    assert f"train-ledger diagnose {tmp_path}" in stdout


def test_stacks_alone_do_not_say_that_nothing_is_wrong(tmp_path: Path) -> None:
    stack = "Process 12: python train.py\nPython v3.11.7 (/usr/bin/python3.11)\n\n"
    path = log(
        tmp_path, f'{stack}Thread 12 (idle): "MainThread"\n    wait (threading.py:320)\n', "rank_1.txt"
    )
    status, stdout, _ = run(path)
    assert (status, stdout.splitlines()[0]) == (
        3,
        "cannot tell: neither a step nor trouble is told in 1 file",
    )


def test_an_mfu_over_100_is_flagged(tmp_path: Path) -> None:
    titan = (
        "[titan] 2026-02-03 04:05:0{s},007 - root - INFO - step: {s}  loss:  5.1000  memory: "
        "30.00GiB(60.00%)  tps: 2,100  tflops: 100.00  mfu: 563.00%\n"
    )
    path = log(tmp_path, titan.format(s=1) + titan.format(s=2))
    assert "563 % at most: over 100" in run(path)[1]


def test_a_log_of_nobody_known_is_no_answer(tmp_path: Path) -> None:
    status, stdout, _ = run(log(tmp_path, "words\n" * 9))
    assert status == 3
    assert stdout.startswith("cannot tell, because nothing of a known format stands in 1 file")


def test_what_a_log_holds_reaches_no_terminal(tmp_path: Path) -> None:
    path = log(tmp_path, "Traceback (most recent call last):\n  x\nValueError: \x1b]0;owned\x07 \x9b2J\n")
    for arguments in ((path,), (path, "--json")):
        stdout = run(*arguments)[1]
        assert "ValueError" in stdout
        assert "\x1b" not in stdout
        assert "\x9b" not in stdout


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    status, stdout, stderr = run(tmp_path / "gone")
    assert (status, stdout, stderr.count("\n")) == (2, "", 1)
    (tmp_path / "weights").write_bytes(b"\x00\x01" * 4096)
    status, stdout, stderr = run(tmp_path / "weights", "--json")
    assert (status, stdout) == (2, "")
    assert "weights: is no text" in stderr
    assert "is no text" in run(tmp_path / "weights")[1]


def test_choices_among_facts_are_for_facts(tmp_path: Path) -> None:
    status, _, stderr = run(log(tmp_path, line(1)), "--only", "step")
    assert (status, stderr.count("\n")) == (2, 1)
    assert "--json" in stderr


def test_a_reader_that_leaves_is_no_trouble(tmp_path: Path) -> None:
    path = log(tmp_path, "".join(map(line, range(1, 20_000))))
    command = [sys.executable, "-m", "train_ledger", "read", str(path), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["step"] == 1
        process.stdout.close()
        assert process.stderr.read() == b""


def test_a_log_that_is_still_written_is_told_as_it_comes() -> None:
    command = [sys.executable, "-m", "train_ledger", "read", "-", "--json"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line(1).encode())
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["step"] == 1
        process.stdin.close()
        assert process.stdout.read() == b""


def test_a_standard_input_that_is_closed_is_one_line() -> None:
    command = f"{shlex.quote(sys.executable)} -m train_ledger read - --json <&-"
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "train-ledger: -: is closed\n"


def test_a_field_that_no_fact_tells_is_said(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(line(1))
    status, stdout, stderr = run(tmp_path / "train.log", "--json", "--fields", "step,loss,los,nope")
    assert (status, json.loads(stdout)["loss"]) == (0, 2.5)
    assert stderr == "train-ledger: --fields: no fact tells los, nope\n"


@needs_locks
def test_what_may_not_be_read_costs_the_other_files_nothing(tmp_path: Path) -> None:
    log, secret, shut = tmp_path / "train.log", tmp_path / "secret.log", tmp_path / "shut"
    log.write_text("".join(map(line, range(1, 6))))
    secret.touch(mode=0)
    shut.mkdir(mode=0)
    told = train_ledger_without_rights("read", log, secret, shut)
    shut.chmod(0o700)
    assert (told.returncode, told.stderr) == (3, "")
    verdict = "cannot tell in 3 files, 2 of which could not be read: 5 lines of steps, no trouble told"
    assert told.stdout.startswith(f"{verdict}\n")
    for path in (secret, shut):
        assert re.search(rf"{re.escape(str(path))}\n  not read +permission denied\n", told.stdout)
