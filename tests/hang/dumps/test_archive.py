"""Dumps in a tar: honest ones of several shapes, and hostile ones."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hang.recorder import Job
from train_ledger.config import Limits
from train_ledger.hang import analyse
from train_ledger.hang.dumps.archive import is_archive
from train_ledger.hang.dumps.attempts import latest_attempts
from train_ledger.hang.dumps.inputs import unpacked

LIMITS = Limits()


def regular(name: str, data: bytes = b"x", mtime: float = 1000.0) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.size, member.mtime = len(data), int(mtime)
    return member, data


def special(name: str, kind: bytes, target: str = "") -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member, b""


def pack(path: Path, *members: tuple[tarfile.TarInfo, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for member, data in members:
            tar.addfile(member, io.BytesIO(data))
    return path


def read(*paths: Path, limits: Limits = LIMITS) -> tuple[dict[str, bytes], list[tuple[str, str]]]:
    """The content of all files to read, by their names as shown, and what was refused."""
    with unpacked(paths, limits) as found:
        files: list[Path] = []
        for path in found.paths:
            files += [it for it in path.iterdir() if it.is_file()] if path.is_dir() else [path]
        content = {found.named(str(it)): it.read_bytes() for it in files}
        said = [(Path(it.file).name if "tar" not in it.file else it.file, it.why) for it in found.unreadable]
        folders = [it for it in found.paths if "train-ledger-tar-" in str(it)]
    assert not any(it.exists() for it in folders), "what was unpacked is gone again"
    return {name.replace(f"{paths[0].parent}/", ""): data for name, data in content.items()}, [
        (name.replace(f"{paths[0].parent}/", ""), why) for name, why in said
    ]


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
def test_a_tar_is_read_however_it_is_packed(tmp_path: Path, mode: str) -> None:
    path = pack(tmp_path / "dumps.tar", regular("rank_0", b"a" * 3000), regular("rank_1", b"b"), mode=mode)
    assert is_archive(path)
    assert read(path) == ({"dumps.tar: rank_0": b"a" * 3000, "dumps.tar: rank_1": b"b"}, [])


def test_the_times_of_the_files_are_kept_for_they_tell_attempts_apart(tmp_path: Path) -> None:
    path = pack(tmp_path / "d.tar", regular("rank_0", mtime=1234))
    with unpacked([path], LIMITS) as found:
        assert (found.paths[0] / "rank_0").stat().st_mtime == 1234


def test_of_a_run_directory_the_latest_attempts_dumps_are_read(tmp_path: Path) -> None:
    names = ("signals/rank_00000.jsonl", "comm_traces/rank_0", "comm_traces/attempt_1/rank_0", "logs/x.log")
    path = pack(tmp_path / "r.tar", *(regular(f"r42/{name}", name.encode()) for name in names))
    content, refused = read(path)
    assert content == {"r.tar: r42/comm_traces/attempt_1/rank_0": b"comm_traces/attempt_1/rank_0"}
    assert refused == [
        (
            "r.tar: r42/comm_traces",
            "1 file of an earlier attempt than attempt_1, not read; name the files to have them read",
        )
    ]


def test_the_folders_of_many_hosts_are_all_read(tmp_path: Path) -> None:
    path = pack(tmp_path / "d.tar", regular("node-0/rank_0"), regular("node-1/rank_1"))
    assert list(read(path)[0]) == ["d.tar: node-0/rank_0", "d.tar: node-1/rank_1"]


HOSTILE = [
    (regular("../rank_9"), "refused: its path leads out of the archive"),
    (regular("a/../../rank_9"), "refused: its path leads out of the archive"),
    (regular("/tmp/rank_9"), "refused: its path leads out of the archive"),
    (special("rank_9", tarfile.SYMTYPE, "/etc/passwd"), "refused: a link"),
    (special("rank_9", tarfile.LNKTYPE, "rank_0"), "refused: a link"),
    (special("rank_9", tarfile.FIFOTYPE), "refused: neither a file nor a folder"),
    (special("rank_9", tarfile.CHRTYPE), "refused: neither a file nor a folder"),
    (regular("d/" * 20 + "rank_9"), "refused: more than 16 folders deep"),
    (regular("r" * 300 + "_9"), "File name too long"),
]


@pytest.mark.parametrize(
    ("member", "why"), HOSTILE, ids=[it[0][0].name[:20] + str(it[0][0].type) for it in HOSTILE]
)
def test_a_member_that_is_refused_is_listed_by_its_name(
    tmp_path: Path, member: tuple[tarfile.TarInfo, bytes], why: str
) -> None:
    path = pack(tmp_path / "d.tar", regular("rank_0"), member, regular("rank_1"))
    content, refused = read(path)
    assert list(content) == ["d.tar: rank_0", "d.tar: rank_1"]
    assert refused == [(f"d.tar: {member[0].name[:200]}", why)]


def test_a_link_to_a_folder_leads_nowhere(tmp_path: Path) -> None:
    """A link first, then a file through it: the classic way out."""
    (tmp_path / "outside").mkdir()
    link = special("way", tarfile.SYMTYPE, str(tmp_path / "outside"))
    content, _ = read(pack(tmp_path / "d.tar", link, regular("way/rank_0")))
    assert list(content) == ["d.tar: way/rank_0"]
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_name_that_comes_twice_is_read_as_it_came_last(tmp_path: Path) -> None:
    content, refused = read(pack(tmp_path / "d.tar", regular("rank_0", b"old"), regular("rank_0", b"new")))
    assert content == {"d.tar: rank_0": b"new"}
    assert refused == [("d.tar: rank_0", "is in the archive more than once; the last one is read")]


def test_what_swells_beyond_measure_is_given_up(tmp_path: Path) -> None:
    path = pack(tmp_path / "d.tar.gz", regular("rank_0", b"\0" * (80 << 20)), mode="w:gz")
    _, refused = read(path)
    assert refused[0][1].startswith("refused from here on: it unpacks to more than 67108864 bytes")


def test_a_header_without_end_is_given_up(tmp_path: Path) -> None:
    member = tarfile.TarInfo("long")
    member.type, member.size = tarfile.XHDTYPE, 40 << 20
    path = tmp_path / "d.tar"
    path.write_bytes(member.tobuf() + b"9" * (40 << 20))
    assert read(path)[1] == [("d.tar", "refused from here on: a header of more than a megabyte")]


def test_a_dump_larger_than_allowed_is_not_written(tmp_path: Path) -> None:
    path = pack(tmp_path / "d.tar", regular("rank_0", b"x" * 2000), regular("rank_1"))
    content, refused = read(path, limits=Limits(dump_bytes=1000))
    assert list(content) == ["d.tar: rank_1"]
    assert refused == [("d.tar: rank_0", "refused: 2000 bytes, more than the 1000 allowed")]


def test_of_a_tar_that_is_cut_the_whole_members_are_read(tmp_path: Path) -> None:
    path = pack(tmp_path / "d.tar", regular("rank_0"), regular("rank_1", b"b" * 5000))
    path.write_bytes(path.read_bytes()[:3000])
    content, refused = read(path)
    assert content["d.tar: rank_0"] == b"x"
    assert refused[-1][1].startswith("damaged archive, read up to member 2")


@pytest.mark.parametrize(
    "data", [b"\x1f\x8bnothing", b"\xfd7zXZ\x00nothing", b"BZh9nothing", b"\x28\xb5\x2f\xfdnothing"]
)
def test_what_only_looks_packed_is_listed(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "d.tar").write_bytes(data)
    content, refused = read(tmp_path / "d.tar")
    assert content == {}
    assert len(refused) == 1


def test_an_empty_tar_is_said_to_be_empty(tmp_path: Path) -> None:
    assert read(pack(tmp_path / "d.tar"))[1] == [("d.tar", "an archive without anything in it")]


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["w", "w:gz", "w:xz"]), st.integers(0, 4000), st.binary(max_size=8), st.integers(0, 600)
)
def test_a_damaged_archive_is_read_or_listed(mode: str, at: int, put: bytes, cut: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = pack(
            Path(folder) / "d.tar", regular("rank_0", os.urandom(700)), regular("a/rank_1"), mode=mode
        )
        data = path.read_bytes()
        path.write_bytes(data[:at] + put + data[at + cut :])
        with unpacked([path], LIMITS) as found:
            assert found.paths or found.unreadable


# Attempts in folders


def test_a_folder_of_several_attempts_is_read_as_its_latest(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "attempt_1", tmp_path / "attempt_10"):
        folder.mkdir(exist_ok=True)
        (folder / "rank_0").write_bytes(b"x")
    (tmp_path / "attempt_11").mkdir()
    chosen, left_out = latest_attempts([tmp_path])
    assert chosen == [tmp_path / "attempt_10"]
    assert [Path(it.file).name for it in left_out] == [tmp_path.name, "attempt_1"]


def test_the_folders_of_several_hosts_are_read_as_one_attempt(tmp_path: Path) -> None:
    for name in (
        "a/rank_0",
        "a/attempt_1/rank_0",
        "b/rank_1",
        "b/attempt_1/rank_1",
        "c/rank_2",
        "c/attempt_2/x",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "c/attempt_2/x").unlink()
    chosen, left_out = latest_attempts(tmp_path / name for name in "abc")
    assert chosen == [tmp_path / "a/attempt_1", tmp_path / "b/attempt_1"]
    assert [Path(it.file).name for it in left_out] == ["a", "b", "c"]


def test_a_folder_without_attempts_stands_for_itself(tmp_path: Path) -> None:
    (tmp_path / "rank_0").write_bytes(b"x")
    (tmp_path / "attempt_x").mkdir()
    assert latest_attempts([tmp_path, tmp_path / "rank_0"]) == ([tmp_path, tmp_path / "rank_0"], [])


def test_a_hang_is_found_in_a_tar_of_a_whole_run(tmp_path: Path) -> None:
    """The files are called by their names in the archive, and no command leads to where it was unpacked."""
    job = Job(4)
    job.issue(range(4), done=True)
    job.issue([0, 1, 3])
    job.write(tmp_path / "dumps")
    members = [
        regular(f"r42/comm_traces/rank_{rank}", (tmp_path / "dumps" / f"rank_{rank}").read_bytes())
        for rank in range(4)
    ]
    path = pack(tmp_path / "r42.tar.gz", *members, regular("r42/comm_traces/rank_9", b"x"), mode="w:gz")
    answer = analyse([path])
    assert answer.culprits == (2,)
    assert [it.file for it in answer.unreadable] == [f"{path}: r42/comm_traces/rank_9"]
    assert "train-ledger-tar-" not in repr(answer)


def test_a_name_that_the_locale_lacks_stops_none_of_the_others(tmp_path: Path) -> None:
    tar = pack(tmp_path / "dumps.tar", regular("\u00fc_rank_0"), regular("rank_1"))
    program = (
        "import sys; from pathlib import Path; from train_ledger.config import Limits; "
        "from train_ledger.hang.dumps.archive import unpack; "
        "print([it.why for it in unpack(Path(sys.argv[1]), Path(sys.argv[2]), Limits())])"
    )
    plain = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    (tmp_path / "into").mkdir()
    command = [sys.executable, "-c", program, str(tar), str(tmp_path / "into")]
    told = subprocess.run(command, env=plain, capture_output=True, check=True).stdout
    assert told == b"['its name cannot be written in this locale: set LC_ALL=C.UTF-8']\n"
    assert os.listdir(tmp_path / "into") == ["rank_1"]
