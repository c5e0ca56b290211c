"""Megatron-LM: run a pretraining script as it is, and have every rank tell of its iterations.

    export TRAIN_LEDGER_RUN=runs/megatron
    torchrun ... examples/megatron_training_log.py pretrain_gpt.py --num-layers ...

Megatron-LM must be importable, as it is when its scripts run. The lines that Megatron prints have the losses,
which are not fetched from the GPU here: keep its log in RUN/logs, and it is read as well.
"""

import os
import runpy
import sys

from megatron.training import training

from train_ledger.signals.integrations.megatron import watch

watch(training, os.environ.get("TRAIN_LEDGER_RUN", "runs/megatron"))
del sys.argv[0]
sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
runpy.run_path(sys.argv[0], run_name="__main__")
