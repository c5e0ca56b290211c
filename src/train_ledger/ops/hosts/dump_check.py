"""Are the dumps that were asked for there and whole?

Read as `hang` reads them, in processes of their own under limits: what those refuse or find cut is no dump.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from train_ledger.config import Limits
from train_ledger.hang.dumps.readers import read_all
from train_ledger.hang.dumps.worker import Job

__all__ = ["unusable"]


def unusable(files: Mapping[int, Path], limits: Limits) -> dict[int, str]:
    """The ranks whose file cannot be read as a whole dump, and why."""
    found: dict[int, str] = {}
    jobs, sizes = [], []
    for rank, path in files.items():
        try:
            status = path.stat()
        except OSError as error:
            found[rank] = error.strerror or str(error)
            continue
        jobs.append(Job(os.fsencode(path), rank, None, status.st_mtime))
        sizes.append(status.st_size)
    for job, reply in zip(jobs, read_all(jobs, sizes, limits), strict=True):
        if reply.dump is None or reply.dump.cut:
            found[job.rank] = (reply.dump.cut if reply.dump else reply.why) or "not read"
    return found
