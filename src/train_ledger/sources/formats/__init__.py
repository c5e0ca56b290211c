"""What do the programs that train write into their own logs? One module a format; all yield the same facts.

A line format may stand in any log beside others (Megatron's lines between NCCL's); an owned format has its
file to itself, line by line (a CSV file, JSON lines); a document is read as a whole (trainer_state.json).
"""

from __future__ import annotations

from train_ledger.sources.formats.format import Document, LineFormat, OwnedFormat

__all__ = ["DOCUMENTS", "LINE_FORMATS", "OWNED_FORMATS", "Document", "LineFormat", "OwnedFormat"]

LINE_FORMATS: tuple[type[LineFormat], ...] = ()
OWNED_FORMATS: tuple[type[OwnedFormat], ...] = ()
DOCUMENTS: tuple[Document, ...] = ()
