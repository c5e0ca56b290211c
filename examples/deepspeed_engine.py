"""DeepSpeed: the engine is watched, on every rank.

DS_ACCELERATOR=cpu torchrun --nproc-per-node 2 examples/deepspeed_engine.py runs/deepspeed
"""

import sys
import tempfile

import deepspeed
import torch

import train_ledger
from train_ledger.signals.integrations.deepspeed import watch

# Before torch.distributed is initialised: so the Flight Recorder is prepared, too.
monitor = train_ledger.start(sys.argv[1] if len(sys.argv) > 1 else "runs/deepspeed")
# On a CPU DeepSpeed would compile its own collectives first, which takes a minute; this example does without.
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
deepspeed.init_distributed("nccl" if torch.cuda.is_available() else "gloo")

model = torch.nn.Linear(16, 1)
engine, *_ = deepspeed.initialize(
    model=model,
    optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
    config={"train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 2},
)
watch(engine, monitor)

for _ in range(40):
    loss = engine(torch.randn(8, 16, device=engine.device)).square().mean()
    engine.backward(loss)
    engine.step()
with tempfile.TemporaryDirectory() as folder:
    engine.save_checkpoint(folder)
torch.distributed.destroy_process_group()
