"""Hugging Face's Trainer: one callback, on every rank.

    python examples/hugging_face_trainer.py runs/hf
    torchrun --nproc-per-node 2 examples/hugging_face_trainer.py runs/hf

The model is a small one of random weights, so that nothing is downloaded.
"""

import sys
import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

from train_ledger.signals.integrations.hf import TrainLedgerCallback

# Before TrainingArguments, which initialise torch.distributed: so the Flight Recorder is prepared, too.
callback = TrainLedgerCallback(sys.argv[1] if len(sys.argv) > 1 else "runs/hf")

config = LlamaConfig(
    vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2
)
tokens = torch.randint(0, 64, (128, 32), generator=torch.Generator().manual_seed(0))
examples = [{"input_ids": row, "labels": row} for row in tokens]

with tempfile.TemporaryDirectory() as output:
    arguments = TrainingArguments(
        output,
        max_steps=20,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        logging_steps=1,
        eval_strategy="steps",
        eval_steps=10,
        save_steps=10,
        include_num_input_tokens_seen="all",  # gives tokens per second
        report_to=[],
    )
    trainer = Trainer(
        LlamaForCausalLM(config),
        arguments,
        train_dataset=examples,
        eval_dataset=examples[:8],
        callbacks=[callback],
    )
    trainer.train()
