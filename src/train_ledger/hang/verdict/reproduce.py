"""How is a fault of the code met again on a few ranks, at the call that makes it?"""

from __future__ import annotations

import re

__all__ = ["RANKS", "reproduction"]

RANKS = 8
_DETAIL = (
    "TORCH_DISTRIBUTED_DEBUG=DETAIL TORCH_CPP_LOG_LEVEL=INFO TORCH_FR_BUFFER_SIZE=20000 "
    "TORCH_FR_DUMP_TEMP_FILE=/tmp/fr_rank_"
)
_LAUNCHER = re.compile(r"\btorchrun\b|\btorch\.distributed\.(?:run|launch)\b")
_PER_NODE = re.compile(r"(--nproc[-_]per[-_]node)(?:=|\s+)(?:'[^']*'|\"[^\"]*\"|\S+)")
_NODES = re.compile(r"(--nnodes)(?:=|\s+)(?:'[^']*'|\"[^\"]*\"|\S+)")
_OF_CLUSTER = re.compile(
    r"\s--(?:rdzv[-_](?:endpoint|backend|id|conf)|node[-_]rank|master[-_](?:addr|port))(?:=|\s+)"
    r"(?:'[^']*'|\"[^\"]*\"|\S+)"
)
_SIMPLE = re.compile(r"(?:torchrun|python3?)\s[^;&|]*")
"""One command, so that variables in front of it are set for it."""


def reproduction(command: str | None, script: str | None = None) -> str | None:
    """The line that runs the job on this host's GPUs under DETAIL; None where nothing is known of it.

    `command` is the run's own (run.json's restart_command); torchrun's numbers of nodes and processes in it
    are set to one and eight. `script` is the training script as a stack names it.

    >>> reproduction("torchrun --nnodes 4 --nproc-per-node=gpu train.py --lr 1").partition("rank_ ")[2]
    'torchrun --nnodes=1 --nproc-per-node=8 train.py --lr 1'
    """
    if command and "\n" not in command:
        if _LAUNCHER.search(command):
            command = _NODES.sub(r"\1=1", _PER_NODE.sub(rf"\1={RANKS}", _OF_CLUSTER.sub("", command)))
        simple = _SIMPLE.fullmatch(command)
        return f"{_DETAIL} {command}" if simple else f"(export {_DETAIL}; {command})"
    return f"{_DETAIL} torchrun --nproc-per-node={RANKS} {script}" if script else None
