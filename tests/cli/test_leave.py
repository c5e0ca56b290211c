"""How commands end."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from train_ledger.answer import ExitCode
from train_ledger.cli.leave import _MENDABLE, BadInputError, ends_well
from train_ledger.config import ConfigError
from train_ledger.run_dir import RunDirError


def _raise(error: BaseException) -> Callable[[], int]:
    def verb() -> int:
        raise error

    return verb


def _ending(verb: Callable[[], int]) -> int:
    with pytest.raises(typer.Exit) as ending:
        ends_well(verb)()
    return ending.value.exit_code


@pytest.mark.parametrize("status", list(ExitCode))
def test_the_result_of_a_verb_is_the_exit_status(status: ExitCode) -> None:
    assert _ending(lambda: status) == status


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (RunDirError("/x: no such run directory"), "train-ledger: /x: no such run directory\n"),
        (ConfigError("a.toml: unknown key"), "train-ledger: a.toml: unknown key\n"),
        (BadInputError("no dumps"), "train-ledger: no dumps\n"),
        (PermissionError(13, "Permission denied", "/x/y"), "train-ledger: /x/y: Permission denied\n"),
        (RunDirError("a\nb\x1b[2J"), "train-ledger: a b\n"),
    ],
)
def test_what_a_person_can_mend_is_one_line(
    error: Exception, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _ending(_raise(error)) == ExitCode.BAD_INPUT
    assert capsys.readouterr() == ("", line)


def test_a_fault_of_ours_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        ends_well(_raise(ZeroDivisionError()))()


def test_ctrl_c_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert _ending(_raise(KeyboardInterrupt())) == 130
    assert capsys.readouterr() == ("", "")


def _program(body: str) -> list[str]:
    """A train-ledger whose verb `diagnose` does `body`."""
    replaced = (
        "import sys, train_ledger.cli.command_line as it\n"
        "from train_ledger.cli.leave import ends_well\n"
        f"def verb():\n    {body}\n"
        "it.app.registered_commands = []\n"
        "it.app.command('diagnose')(ends_well(verb))\n"
        "sys.argv = ['train-ledger', 'diagnose']\n"
        "it.main()\n"
    )
    return [sys.executable, "-c", replaced]


def test_a_fault_of_ours_never_reads_as_trouble_found() -> None:
    ended = subprocess.run(_program("1 / 0"), capture_output=True, text=True, check=False)
    assert ended.returncode == ExitCode.CANNOT_TELL
    assert "ZeroDivisionError" in ended.stderr
    assert ended.stderr.endswith("please report it\n")


def test_a_reader_that_leaves_ends_us_quietly() -> None:
    with subprocess.Popen(
        _program("while True: print('a line', flush=True)"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"a line\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(90) == 130


def test_a_reader_that_left_before_the_last_buffer_too() -> None:
    """What is still buffered when the verb is done must not end in a complaint of the interpreter."""
    body = "import os; print('x'); r, w = os.pipe(); os.close(r); os.dup2(w, 1); return 0"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    ended = subprocess.run(_program(body), capture_output=True, text=True, env=environment, check=False)
    assert (ended.returncode, ended.stderr) == (130, "")


def test_ctrl_c_from_a_terminal() -> None:
    body = "import time; print('up', flush=True); time.sleep(60)"
    with subprocess.Popen(_program(body), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(2)
        assert process.stderr.read() == b""
        assert process.wait(90) == 130


def test_a_terminal_without_utf8_gets_its_answer() -> None:
    ended = subprocess.run(
        _program("print('rank 3 – 0'); return 1"),
        capture_output=True,
        env={
            "PYTHONIOENCODING": "ascii",
            "PYTHONPATH": ":".join(sys.path),
            "PATH": str(Path(sys.executable).parent),
        },
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, b"rank 3 - 0\n")


def _shell(arguments: str, *, cwd: Path) -> subprocess.CompletedProcess[str]:
    """`train-ledger` with the redirections of a shell."""
    command = f"{sys.executable} -m train_ledger {arguments}"
    shell = ["sh", "-c", command]
    return subprocess.run(shell, capture_output=True, text=True, timeout=180, check=False, cwd=cwd)


@pytest.mark.parametrize(
    "arguments", ["diagnose .", "diagnose . --json", "export . --once", "export . --once --json", "--help"]
)
def test_a_closed_standard_output_is_one_line(arguments: str, tmp_path: Path) -> None:
    ended = _shell(f"{arguments} >&-", cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr == "train-ledger: standard output is closed; the answer has nowhere to go\n"


@pytest.mark.parametrize("arguments", ["diagnose .", "export . --once", "--help", "hang --help", "--version"])
def test_a_full_standard_output_is_one_line(arguments: str, tmp_path: Path) -> None:
    ended = _shell(f"{arguments} >/dev/full", cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (2, "train-ledger: standard output: No space left on device\n")


def test_errors_do_not_go_into_the_answer_where_standard_error_is_closed(tmp_path: Path) -> None:
    ended = _shell("diagnose gone 2>&-", cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")


def test_nor_into_the_first_file_that_is_opened(tmp_path: Path) -> None:
    ended = _shell("diagnose . --html report.html <&- 2>&-", cwd=tmp_path)
    assert ended.returncode == 3
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


def test_ctrl_c_while_it_still_loads() -> None:
    program = (
        "import builtins, sys, train_ledger.cli\n"
        "real = builtins.__import__\n"
        "def interrupted(name, *rest):\n"
        "    if name == 'typer':\n        exec('raise KeyboardInterrupt')\n"
        "    return real(name, *rest)\n"
        "builtins.__import__ = interrupted\n"
        "train_ledger.cli.main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


@pytest.mark.parametrize("verb", [["hang"], ["diagnose"], ["top", "--once"]], ids=str)
@pytest.mark.parametrize("loaded", ["typer.core", "train_ledger.cli.command_line", "train_ledger.render"])
def test_ctrl_c_before_the_verb_does_its_work(loaded: str, verb: list[str], tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("x")
    command = [sys.executable, "-X", "importtime", "-m", "train_ledger", verb[0], str(tmp_path), *verb[1:]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stderr:
            if line.split("|")[-1].strip().startswith(loaded):
                process.send_signal(signal.SIGINT)
                break
        said = [it for it in process.stderr if not it.startswith("import time:")]
        assert (process.wait(90), said, process.stdout.read()) == (130, [], "")


def test_until_main_runs_next_to_nothing_is_loaded() -> None:
    """Ctrl-C cannot be answered before; Python itself is up with these."""
    program = (
        "import sys; before = {*sys.modules, '__future__'}; import train_ledger.cli\n"
        "print(sorted(set(sys.modules) - before))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "['train_ledger', 'train_ledger.cli']\n"


def test_ctrl_c_stays_ignored_where_whoever_started_us_had_it_so(tmp_path: Path) -> None:
    script = "trap '' INT; exec \"$@\""
    program = _program("import os; os.kill(os.getpid(), 2); return 0")
    program[-1] = program[-1].replace("it.main()", "from train_ledger.cli import main; main()")
    ended = subprocess.run(["sh", "-c", script, "sh", *program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_ctrl_c_that_nobody_caught_is_no_fault_of_ours() -> None:
    program = (
        "import sys; from train_ledger.cli.leave import *; sys.excepthook = crash; raise KeyboardInterrupt"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (130, "")


def test_ctrl_c_after_the_answer_changes_nothing() -> None:
    body = "import atexit, os; atexit.register(os.kill, os.getpid(), 2); return 1"
    program = _program(body)
    program[-1] = program[-1].replace("it.main()", "from train_ledger.cli import main; main()")
    ended = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (1, "")


def test_who_is_terminated_takes_along_what_it_started(tmp_path: Path) -> None:
    launcher = f"sh -c 'echo $$ > {tmp_path}/pid; exec sleep 600' {{host}} {{argv}}"
    command = [sys.executable, "-m", "train_ledger", "stacks", "--launcher", launcher, "--hosts", "a"]
    asked = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    for _ in range(2400):
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"):
            break
        time.sleep(0.05)
    asked.terminate()
    _, said = asked.communicate(timeout=120)
    assert (asked.returncode, said) == (-signal.SIGTERM, b"")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_where_training_alone_was_installed_the_command_says_what_it_lacks() -> None:
    without = "import sys; sys.modules['typer'] = None; from train_ledger.cli import main; main()"
    ran = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert ran.stderr.startswith("train-ledger: the command needs the Python module typer, which is not")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(("module", "name"), _MENDABLE)
def test_every_error_that_is_one_line_is_where_it_is_looked_for(module: str, name: str) -> None:
    error = getattr(importlib.import_module(module), name)
    assert (error.__module__.startswith(module), issubclass(error, Exception)) == (True, True)
