"""Where are the dumps, when the folder above them was named?

Where a folder holds no dump and just one of its folders does, that one is meant.
"""

from __future__ import annotations

from pathlib import Path

from train_ledger.hang.dumps.dump_files import first_in, rank_of

__all__ = ["folder_meant"]

_LOOKED_INTO = 1000
_BEGINNING_BYTES = 65536
_KEYS = (b'"entries"', b'"pg_config"', b'"profiling_name"')


def folder_meant(folder: Path) -> Path:
    """The one folder in `folder` that holds dumps, where it holds none itself; else `folder`."""
    try:
        if not folder.is_dir() or _holds_dumps(folder):
            return folder
        holding = [it for it in first_in(folder, _LOOKED_INTO) if it.is_dir() and _holds_dumps(it)]
    except (OSError, ValueError):  # ValueError: a zero byte in the name
        return folder
    return holding[0] if len(holding) == 1 else folder


def _holds_dumps(folder: Path) -> bool:
    """Also in its folders of attempts."""
    try:
        return any(_is_dump(it) for it in first_in(folder, _LOOKED_INTO)) or any(
            _holds_dumps(it)
            for it in first_in(folder, _LOOKED_INTO)
            if it.name.startswith("attempt_") and it.is_dir()
        )
    except OSError:
        return False


def _is_dump(file: Path) -> bool:
    """By its name and by how it begins; an empty one, too: something was to be written there."""
    if file.name.startswith(".") or rank_of(file.name) is None or not file.is_file():
        return False
    with open(file, "rb") as opened:
        begins = opened.read(_BEGINNING_BYTES)
    if begins[:1] in (b"{", b"["):
        return any(key in begins for key in _KEYS)
    return begins[:1] in (b"\x80", b"")
