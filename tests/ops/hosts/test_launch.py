"""Commands on many hosts, which are shells of this machine here."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from train_ledger.ops.hosts.launch import TEMPLATES, Launcher, LauncherError, Outcome, answer_line, launch
from waiting import wait_until

SHELL = Launcher.of("sh -c {command}")


def run(script: str, hosts: tuple[str, ...] = ("a",), **limits: float) -> dict[str, Outcome]:
    """The script with the host's name as its first argument."""
    limits = {"timeout_s": 60, **limits}
    launcher = Launcher(("sh", "-c", script, "sh", "{host}", "{command}"))
    return {it.host: it for it in launch(launcher, hosts, ["x"], **limits)}  # type: ignore[arg-type]


def test_what_each_host_answers_comes_back() -> None:
    found = run("echo from $1", ("a", "b"))
    assert {host: it.output for host, it in found.items()} == {"a": b"from a\n", "b": b"from b\n"}
    assert {it.why for it in found.values()} == {None}


def test_the_command_reaches_the_other_shell_word_by_word() -> None:
    words = ["printf", "%s|", "a b", "$HOME", "'", "*"]
    (outcome,) = launch(SHELL, ["a"], words, timeout_s=60)
    assert outcome.output == b"a b|$HOME|'|*|"


def test_nothing_goes_through_a_shell_on_this_side(tmp_path: Path) -> None:
    (outcome,) = launch(Launcher.of("echo {host} {argv} ;"), ["a"], ["touch", f"{tmp_path}/x"], timeout_s=60)
    assert outcome.output == f"a touch {tmp_path}/x ;\n".encode()


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo cannot resolve $1 >&2; exit 255", "ended with status 255: cannot resolve a"),
        ("exit 3", "ended with status 3"),
        ("kill -9 $$", "ended by SIGKILL"),
        ("kill -40 $$", "ended by signal 40"),
        ("exec cat /dev/zero >&2", "given up: more than 8388608 bytes of complaints"),
        ("sleep 60", "no answer within 0.3 s"),
        ("cat /dev/zero", "given up: it answered more than the 1000 bytes allowed"),
    ],
)
def test_a_host_that_fails_is_told_with_its_reason(script: str, why: str) -> None:
    found = run(script, timeout_s=0.3 if "sleep" in script else 60, most_bytes=1000)
    assert found["a"].why == why
    assert len(found["a"].output) <= 1000


def test_a_launcher_that_is_not_there_is_told() -> None:
    (outcome,) = launch(Launcher.of("/no/such/ssh {command}"), ["a"], ["x"], timeout_s=60)
    assert outcome.why == "/no/such/ssh: No such file or directory"


def test_one_that_hangs_stops_nobody_else() -> None:
    started = time.monotonic()
    found = run("test $1 = b && exec sleep 60; echo ok", ("a", "b", "c"), timeout_s=4.0, at_once=1)
    assert time.monotonic() - started < 50
    assert [found[host].output for host in "abc"] == [b"ok\n", b"", b"ok\n"]


def test_who_leaves_early_ends_what_still_runs(tmp_path: Path) -> None:
    launcher = Launcher(
        ("sh", "-c", f"echo $$ > {tmp_path}/$1; test $1 = a || exec sleep 60", "sh", "{host}", "{command}")
    )
    outcomes = launch(launcher, ["b", "c", "a"], ["x"], timeout_s=60)
    assert next(outcomes).host == "a"  # type: ignore[call-overload]
    outcomes.close()  # type: ignore[attr-defined]
    for host in ("b", "c"):
        path = tmp_path / host
        if path.exists() and (pid := path.read_text().strip()):  # else it was ended before it could say
            with pytest.raises(ProcessLookupError):
                os.kill(int(pid), 0)


def test_what_a_launcher_started_ends_with_it(tmp_path: Path) -> None:
    run(f"sleep 600 & echo $! > {tmp_path}/pid; wait", timeout_s=4.0)
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: has_ended(pid), what="for the end of the launcher's child")


def has_ended(pid: int) -> bool:
    """It is gone, or dead and waits for whoever adopted it to read that."""
    try:
        return "Z" in Path(f"/proc/{pid}/stat").read_text().split(")")[1][:3]
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_each_named_launcher_holds_the_host_and_the_command() -> None:
    for name in TEMPLATES:
        words = Launcher.of(name).command("node-1", ["train-ledger", "stacks", "--json"])
        assert any("node-1" in word for word in words)
        assert "train-ledger stacks --json" in " ".join(words)


@pytest.mark.parametrize("text", ["rsh", "ssh {host}", "", "ssh 'x {command}"])
def test_what_is_no_launcher_is_refused(text: str) -> None:
    with pytest.raises(LauncherError):
        Launcher.of(text)


def test_several_hosts_need_a_template_that_tells_them_apart() -> None:
    with pytest.raises(LauncherError, match=r"no \{host\} in it, and there are 2 hosts"):
        [*launch(SHELL, ["a", "b"], ["true"], timeout_s=60)]


def test_the_answer_is_found_behind_greetings() -> None:
    assert answer_line(b'Welcome!\r\n50%\r{"schema":1}\r\nbye {"schema":2}\n') == b'{"schema":1}'
    assert answer_line(b'{"schema":1}') == b'{"schema":1}'
    assert answer_line(b"y\n" * 1000) is None


def test_of_a_flood_only_the_beginning_is_kept() -> None:
    assert len(run("yes", most_bytes=1 << 20)["a"].output) == 4096
