"""What do the programs that train write into their own logs? One module a format; all yield the same facts.

A line format may stand in any log beside others (Megatron's lines between NCCL's); an owned format has its
file to itself, line by line (a CSV file, JSON lines); a document is read as a whole (trainer_state.json).
"""

from __future__ import annotations

from train_ledger.sources.formats.deepspeed.deepspeed import DeepSpeed
from train_ledger.sources.formats.deepspeed.deepspeed_csv import DeepSpeedCsv
from train_ledger.sources.formats.format import Document, LineFormat, OwnedFormat
from train_ledger.sources.formats.hugging_face.hf_trainer import HfTrainer
from train_ledger.sources.formats.hugging_face.llama_factory import LlamaFactory
from train_ledger.sources.formats.hugging_face.trainer_state import TrainerState
from train_ledger.sources.formats.lightning.lightning_csv import LightningCsv
from train_ledger.sources.formats.megatron.megatron import Megatron
from train_ledger.sources.formats.megatron.megatron_progress import MegatronProgress
from train_ledger.sources.formats.nanogpt.nanogpt import NanoGpt
from train_ledger.sources.formats.own_loop import OwnLoop
from train_ledger.sources.formats.signal_lines import SignalLines
from train_ledger.sources.formats.system.collectives import Collectives
from train_ledger.sources.formats.system.error_file import ErrorFile
from train_ledger.sources.formats.system.exceptions import Exceptions
from train_ledger.sources.formats.system.kernel import Kernel
from train_ledger.sources.formats.system.launcher import Launcher
from train_ledger.sources.formats.system.slurm import Slurm
from train_ledger.sources.formats.system.stacks import PySpyJson, PySpyText
from train_ledger.sources.formats.torchtitan.torchtitan import Torchtitan
from train_ledger.sources.formats.torchtitan.torchtitan_spans import TorchtitanSpans

__all__ = ["DOCUMENTS", "LINE_FORMATS", "OWNED_FORMATS", "Document", "LineFormat", "OwnedFormat"]

LINE_FORMATS: tuple[type[LineFormat], ...] = (
    Collectives,
    Exceptions,
    Launcher,
    Kernel,
    Slurm,
    Torchtitan,
    HfTrainer,
    Megatron,
    DeepSpeed,
    NanoGpt,
    OwnLoop,
)
OWNED_FORMATS: tuple[type[OwnedFormat], ...] = (
    SignalLines,
    PySpyText,
    TorchtitanSpans,
    LlamaFactory,
    LightningCsv,
    MegatronProgress,
    DeepSpeedCsv,
)
DOCUMENTS: tuple[Document, ...] = (
    PySpyJson,
    ErrorFile(),
    TrainerState(),
)
