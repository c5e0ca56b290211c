"""`python -m train_ledger` is `train-ledger`."""

from __future__ import annotations

from train_ledger.cli import main

if __name__ == "__main__":
    main()
