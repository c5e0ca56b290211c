"""Who makes what is shown, while others are answered?

One thread beside the server's: of a thousand ranks a page takes a tenth of a second or three, in which a
kubelet's question or another page must not wait. One, so that the keeper, which shares the interpreter, is
held up no more by many readers than by one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["Making"]

T = TypeVar("T")


class Making:
    """Makes one thing after the other; whoever waits for one holds nobody up."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="page made")

    async def made(self, make: Callable[[], T]) -> T:
        """What `make` returns. Raises what it raises."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, make)
