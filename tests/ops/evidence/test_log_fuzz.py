"""Logs cut, glued and mangled: read or counted, never an error, and never more ranks than the text names."""

from __future__ import annotations

import random

from ops.evidence.test_of_logs import asked, caught, differs, fingerprint
from train_ledger.hang import analyse
from train_ledger.ops.evidence.of_logs import read_logs

KERNEL = "1746493323.5 n7 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=python, GPU has fallen off\n"
EPILOGUE = "Root Cause (first observed failure):\n  host      : n1\n  rank      : 1 (local_rank: 1)\n"
EPILOGUE += "  exitcode  : -9 (pid: 2)\n"


def test_ten_thousand_mangled_lines_are_no_error(tmp_path):
    random.seed(11)
    text = "".join(caught(rank) + asked(rank, 9) for rank in range(4)) + KERNEL + EPILOGUE
    text += differs(0, fingerprint(0, "ALLREDUCE"), fingerprint(1, "ALLGATHER"))
    lines = text.encode().splitlines(keepends=True)
    for number in range(20):
        mangled = bytearray()
        for _ in range(500):
            line = bytearray(random.choice(lines))
            for _ in range(random.randrange(4)):
                at = random.randrange(len(line) or 1)
                line[at : at + random.randrange(6)] = random.randbytes(random.randrange(5)).replace(
                    b"\0", b"9"
                )
            mangled += line
        path = tmp_path / f"{number}.log"
        path.write_bytes(mangled)
        told = read_logs([path])
        answer = analyse([], known=told.known, world_size=8)
        assert set(answer.culprits) <= set(told.known) | set(range(8))
