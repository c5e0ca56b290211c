"""On which GPU is a rank?

By the GPU's UUID, else by its PCI address; by its index on the host only where the rank has no UUID. Hosts
are the same where their short names are, as one program tells the domain and another does not.
"""

from __future__ import annotations

from typing import NamedTuple

from train_ledger.sources import pci_address

__all__ = ["Place", "host_key", "is_same_host"]


class Place(NamedTuple):
    """Where a rank is, or was when it was last heard; `since_t` is when the run came to that host."""

    rank: int
    host: str
    gpu: int | None
    uuid: str | None
    pci: str | None
    pid: int | None
    since_t: float

    def is_on(self, gpu: int | None, uuid: str | None, pci: str | None) -> bool:
        """Whether this is the GPU, of the same host, that it is on."""
        if self.uuid and uuid:
            return _bare(self.uuid) == _bare(uuid)
        if self.pci and pci:
            return pci_address(self.pci) == pci_address(pci)
        return not self.uuid and self.gpu is not None and self.gpu == gpu


def _bare(uuid: str) -> str:
    return uuid.lower().removeprefix("gpu-")


def host_key(host: str) -> str:
    """What the names of one host have in common.

    >>> host_key("Node037.cluster.example"), host_key("10.0.3.7")
    ('node037', '10.0.3.7')
    """
    name = host.lower()
    return name if name.replace(".", "").isdecimal() else name.partition(".")[0]


def is_same_host(one: str, other: str) -> bool:
    """Whether both name one host; two names with domains are to be equal.

    >>> is_same_host("n7", "N7.example.org"), is_same_host("n7.a", "n7.b")
    (True, False)
    """
    a, b = one.lower(), other.lower()
    return a == b or (host_key(a) == host_key(b) and ("." not in a or "." not in b))
