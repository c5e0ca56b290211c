"""How does the speed of a run develop: its pace, its use of the GPUs, its waits and its memory?"""

from train_ledger.ledger.trends.figures import Fragmented, Outlier, Speed, Spike, StepTimes

__all__ = ["Fragmented", "Outlier", "Speed", "Spike", "StepTimes"]
