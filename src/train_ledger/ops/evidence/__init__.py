"""What do dumps, stacks, logs and readings of the hardware say of each rank, before anybody judges?"""

from train_ledger.ops.evidence.knowledge import knowledge_of
from train_ledger.ops.evidence.together import HangEvidence, gather, logs_about

__all__ = ["HangEvidence", "gather", "knowledge_of", "logs_about"]
