"""Where does each rank run, and which part of the model is its?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from train_ledger.fields import read_world_size
from train_ledger.ledger.trends.stages import coordinates_of, stages_of

__all__ = ["Layout", "Place", "layout_of"]


@dataclass(frozen=True, slots=True)
class Place:
    """One rank: its host, its GPU (index, uuid), its pipeline stage and its data-parallel replica.

    What is not known is None.
    """

    rank: int
    host: str | None = None
    gpu: int | None = None
    uuid: str | None = None
    stage: int | None = None
    replica: int | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """What is known of the ranks' places; `identities` are the keys of a run_start or of ranks.jsonl.

    `is_told` says that run.json tells how the model is spread; else all ranks pass for one stage.
    """

    world_size: int | None = None
    parallelism: Mapping[str, Any] = field(default_factory=dict)
    identities: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def is_told(self) -> bool:
        return bool(self.parallelism)

    def places(self, ranks: Iterable[int]) -> tuple[Place, ...]:
        """The place of each of these ranks.

        >>> layout = Layout(4, {"dp": 2, "pp": 2}, {3: {"host": "n1", "gpu": 1}})
        >>> layout.places([3])
        (Place(rank=3, host='n1', gpu=1, uuid=None, stage=1, replica=1),)
        """
        stage = stages_of(self.world_size, self.parallelism)
        replica = coordinates_of("dp", self.world_size, self.parallelism)
        return tuple(
            Place(
                rank,
                **_identity(self.identities.get(rank, {})),
                stage=None if stage is None else stage(rank),
                replica=None if replica is None else replica(rank),
            )
            for rank in ranks
        )


def layout_of(run: Mapping[str, Any], identities: Mapping[int, Mapping[str, Any]]) -> Layout:
    """The layout by the content of run.json and what each rank said of itself."""
    parallelism = run.get("parallelism")
    return Layout(
        read_world_size(run.get("world_size")),
        parallelism if isinstance(parallelism, Mapping) else {},
        identities,
    )


def _identity(told: Mapping[str, Any]) -> dict[str, Any]:
    host, gpu, uuid = told.get("host"), told.get("gpu"), told.get("uuid")
    return {
        "host": host if isinstance(host, str) and host else None,
        "gpu": gpu if isinstance(gpu, int) and not isinstance(gpu, bool) else None,
        "uuid": uuid if isinstance(uuid, str) and uuid else None,
    }
