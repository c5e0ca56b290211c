"""Every file under examples/ that trains runs as its docstring says, and leaves a line a step."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from signals.integrations.trainings import TRAIN_LEDGER_LEFT, events, numbers, order

EXAMPLES = Path(__file__).parents[3] / "examples"
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


def run_example(name: str, *arguments: object, launcher: tuple[str, ...] = (), **environ: str) -> None:
    kept = {key: value for key, value in os.environ.items() if key not in TRAIN_LEDGER_LEFT}
    own = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu", "CUDA_VISIBLE_DEVICES": ""}
    ran = subprocess.run(
        [sys.executable, *launcher, str(EXAMPLES / name), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=400,
        env={**kept, **own, **environ},
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "library", "launcher", "ranks"),
    [
        ("plain_loop.py", "torch", (), 1),
        ("plain_loop.py", "torch", TORCHRUN, 2),
        ("hugging_face_trainer.py", "transformers", (), 1),
        ("lightning_callback.py", "lightning", (), 1),
        ("accelerate_tracker.py", "accelerate", (), 1),
        ("deepspeed_engine.py", "deepspeed", TORCHRUN, 2),
    ],
)
def test_an_example_leaves_twenty_steps_of_each_rank(
    tmp_path: Path, name: str, library: str, launcher: tuple[str, ...], ranks: int
) -> None:
    if not find_spec(library):
        pytest.skip(f"{library} is absent")
    run_example(name, tmp_path, launcher=launcher)
    for rank in range(ranks):
        assert sorted(set(numbers(tmp_path, rank))) == list(range(1, 21))
        assert order(tmp_path, rank)[-1] == "run_end"
        assert events(tmp_path, "exception", rank) == []


def test_a_script_of_megatron_is_run_as_it_is(tmp_path: Path) -> None:
    package = tmp_path / "megatron" / "training"
    package.mkdir(parents=True)
    (package / "training.py").write_text(
        "def training_log(loss_dict, iteration):\n    print(iteration)\n"
        "def pretrain(last):\n    for iteration in range(1, last + 1):\n"
        "        training_log({}, iteration)\n"
    )
    script = tmp_path / "pretrain.py"
    script.write_text(
        "import sys\nfrom megatron.training.training import pretrain\npretrain(int(sys.argv[1]))\n"
    )
    environ = {"TRAIN_LEDGER_RUN": str(tmp_path / "run"), "PYTHONPATH": str(tmp_path)}
    run_example("megatron_training_log.py", script, 3, **environ)
    assert numbers(tmp_path / "run") == [1, 2, 3]


def test_torchtitan_is_told_of_both_handlers() -> None:
    printed = subprocess.run(
        ["sh", str(EXAMPLES / "torchtitan.sh"), "sh", "-c", "echo $TITAN_STRUCT_LOGGER_HANDLERS"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    own, ours = printed.strip().split(",")
    assert own.endswith(".register_jsonl_handler")
    module, _, factory = ours.rpartition(".")
    assert callable(getattr(__import__(module, fromlist=[factory]), factory))
