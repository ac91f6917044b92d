"""Reading ahead: an iterator run by a thread of its own, and items worked on by several, in order."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from joblib import cpu_count

T = TypeVar("T")
R = TypeVar("R")
MOST_THREADS = 4
POLL_SECONDS = 0.1
"""How soon a reader notices that nobody listens any more."""


def ahead(items: Iterator[T], depth: int = 2) -> Iterator[T]:
    """The same items, read by a thread that stays at most ``depth`` of them ahead.

    An error of the reader is raised where the item would have come. Closing this generator ends
    the thread and closes ``items``.
    """
    ready: queue.Queue[tuple[str, Any]] = queue.Queue(maxsize=depth)
    stop = threading.Event()

    def hand_over(kind: str, value: Any) -> bool:
        while not stop.is_set():
            try:
                ready.put((kind, value), timeout=POLL_SECONDS)
                return True
            except queue.Full:
                continue
        return False

    def read() -> None:
        try:
            for item in items:
                if not hand_over("item", item):
                    break
            else:
                hand_over("end", None)
        except BaseException as error:  # told to whoever waits for the next item
            hand_over("error", error)
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()

    thread = threading.Thread(target=read, name="asset-svm-reader", daemon=True)
    thread.start()
    try:
        while True:
            kind, value = ready.get()
            if kind == "end":
                return
            if kind == "error":
                raise value
            yield value
    finally:
        stop.set()
        thread.join()


def in_order(items: Iterator[T], work: Callable[[T], R]) -> Iterator[R]:
    """``work`` of every item, done by a few threads, in the order of the items."""
    threads = min(cpu_count(), MOST_THREADS)
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
