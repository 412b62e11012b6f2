"""One thread that writes to the store, so that the event loop never waits for a disk."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from bridge.launcher import JobFiles
from slurmk.core.effects import Effect

Files: TypeAlias = Mapping[int, JobFiles]
_Order: TypeAlias = "tuple[Sequence[Effect], Files, asyncio.Future[None]]"


class Commits(Protocol):
    """What the committer needs of the store."""

    def commit(self, effects: Sequence[Effect], files: Files) -> None:
        """All of it in one transaction, on disk when this returns."""
        ...


class Committer:
    """Commits batches one after another. A commit's failure is its future's exception, and nothing of it was kept."""

    def __init__(self, store: Commits, loop: asyncio.AbstractEventLoop) -> None:
        self._store = store
        self._loop = loop
        self._orders: queue.SimpleQueue[_Order | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="committer", daemon=True)
        self._thread.start()

    def commit(self, effects: Sequence[Effect], files: Files) -> asyncio.Future[None]:
        """Have a batch committed; the future is done when it is on disk."""
        done: asyncio.Future[None] = self._loop.create_future()
        self._orders.put((effects, files, done))
        return done

    async def stop(self) -> None:
        """Finish what was ordered, then end the thread."""
        self._orders.put(None)
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        while (order := self._orders.get()) is not None:
            effects, files, done = order
            fault: Exception | None = None
            try:
                self._store.commit(effects, files)
            except Exception as error:
                fault = error
            try:
                self._loop.call_soon_threadsafe(_settle, done, fault)
            except RuntimeError:  # the loop is closed: nobody waits any more
                return


def _settle(done: asyncio.Future[None], fault: Exception | None) -> None:
    if done.done():
        return
    if fault is None:
        done.set_result(None)
    else:
        done.set_exception(fault)
