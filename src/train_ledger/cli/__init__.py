"""Which verb? One thin file for each."""

from __future__ import annotations

from train_ledger.cli.command_line import app, main

__all__ = ["app", "main"]
