"""What does DeepSpeed-Chat print of a step of reinforcement learning, which has phases of its own?

`epoch: 0|step: 3|ppo_ep: 1|act_loss: …`, the reward, and where the time went: generation, training, others.
Its steps count from 0 in each epoch; here they count on. The engines of actor and critic print their own
`step=N` in between, with a count of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from train_ledger.sources.formats.own_name import own_name
from train_ledger.sources.formats.pairs import pairs_in, with_unit
from train_ledger.sources.lines.log_number import log_number

__all__ = ["ChatSteps"]

_STEP = re.compile(r"\b[Ee]poch: (\d{1,9}) ?\| ?[Ss]tep: (\d{1,12}) ?\|(.*)", re.DOTALL)
_REWARD = re.compile(
    r"\b[Aa]verage reward score: ([-+]?[\w.+-]{1,40})(?: \| EMA reward score: ([-+]?[\w.+-]{1,40}))?"
)
_SUMMARY = re.compile(r"\b(End-to-End|Generation|Training) {1,4}=> Latency: ([\d.]{1,20})s(.*)", re.DOTALL)
_RATE = re.compile(r"\b(TFLOPs|Samples/sec): ([\d.]{1,20})\b")
_SHARE = re.compile(r" {0,2}\([\d.]{1,10}%\)\s{0,4}\Z")
_OF_A_STEP = ("verage reward score: ", "|E2E latency=", "=> Latency: ")
_BEGINS = re.compile(r"Beginning of Epoch \d{1,9}/\d{1,9}, Total Generation Batches \d")
_NAMES = {
    "e2e_latency": "step_time_s",
    "cursamplespersec": "samples_per_second",
    "avgsamplespersec": "samples_per_second_avg",
}
_RATES = {"TFLOPs": "tflops", "Samples/sec": "samples_per_second"}
_STEMS = {"End-to-End": "", "Generation": "generation_", "Training": "training_"}


class ChatSteps:
    """`is_on` once the log is known to be one of reinforcement learning; `number` is of the last step."""

    marks: ClassVar[tuple[bytes, ...]] = (
        b"tep: ",
        b"|E2E latency=",
        b"verage reward score: ",
        b"Total Generation Batches",
        b"=> Latency: ",
    )

    def __init__(self) -> None:
        self.is_on = False
        self.number = -1
        self._epoch = 0
        self._before = 0

    def may_tell(self, text: str) -> bool:
        """Whether `values` has anything to look for in a line, by a quick look."""
        begins = "poch: " in text or "Beginning of Epoch " in text
        return begins or (self.number >= 0 and any(it in text for it in _OF_A_STEP))

    def values(self, text: str) -> Iterator[dict[str, float]]:
        """The values of a line, for the step `number` (which a line of a new step moves on)."""
        if _BEGINS.search(text):
            self.is_on = True
        elif match := _STEP.search(text):
            yield from self._step(match)
        elif self.number < 0:
            return
        elif match := _REWARD.search(text):
            found = {"reward": log_number(match[1]), "reward_ema": log_number(match[2] or "")}
            yield {name: it for name, it in found.items() if it is not None}
        elif "|E2E latency=" in text:
            yield _latencies(text)
        elif match := _SUMMARY.search(text):
            stem = _STEMS[match[1]]
            rates = {
                f"{stem}{_RATES[name]}": float(it) for name, it in _RATE.findall(match[3]) if _is_number(it)
            }
            seconds = {f"{stem}s" if stem else "step_time_s": float(match[2])} if _is_number(match[2]) else {}
            yield {**seconds, **rates}

    def _step(self, match: re.Match[str]) -> Iterator[dict[str, float]]:
        values = {
            own: number
            for name, text in pairs_in(match[3].split("|"))
            if (own := own_name(name)) and (number := log_number(text)) is not None
        }
        if not any(name.endswith("_loss") for name in values):
            return
        epoch, step = int(match[1]), int(match[2])
        if epoch > self._epoch:
            self._before = self.number + 1
        elif epoch < self._epoch:
            self._before = 0
        self._epoch, self.number, self.is_on = epoch, self._before + step, True
        yield {"epoch": float(epoch), **values}


def _latencies(text: str) -> dict[str, float]:
    """
    >>> _latencies("|E2E latency=8.0s |Generate time=5.0s (62.5%) |Others=3.0 (37.5%)|CurSamplesPerSec=8.0 |")
    {'step_time_s': 8.0, 'generate_time_s': 5.0, 'others_s': 3.0, 'samples_per_second': 8.0}
    """
    found: dict[str, float] = {}
    for name, value in pairs_in(_SHARE.sub("", it) for it in text.split("|")):
        own, number = own_name(name), with_unit(value)
        if own and number is not None:
            found[_NAMES.get(own, f"{own}_s")] = number
    return found


def _is_number(text: str) -> bool:
    return log_number(text) is not None
