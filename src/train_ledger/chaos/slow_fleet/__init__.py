"""What would the ranks of a slow job tell, step by step, and who is really to blame?

Simulated jobs as tables of ranks × steps: data, tensor and pipeline parallel, on hosts, with noise of heavy
tails, checkpoints, evaluations, garbage collection, unequal sequences and what else healthy jobs do; and with
one of the faults that slow jobs have. A step ends when the slowest rank's work is done, and all others wait.
"""

from __future__ import annotations

from train_ledger.chaos.slow_fleet.files import write_job
from train_ledger.chaos.slow_fleet.job import simulate
from train_ledger.chaos.slow_fleet.plan import CAUSES, SlowJob, SlowPlan, SlowTruth, random_plan

__all__ = ["CAUSES", "SlowJob", "SlowPlan", "SlowTruth", "random_plan", "simulate", "write_job"]
