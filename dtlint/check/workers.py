"""Several processes over many files: work dealt out by size, and a process that dies costs one file its result."""

from __future__ import annotations

import heapq
import multiprocessing
import os
import sys
import threading
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import TYPE_CHECKING

from dtlint.check.garbage import search_seldom
from dtlint.check.job import Job, Mode, Result, finish
from dtlint.check.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from multiprocessing.context import BaseContext

    from dtlint.catalogue import AnyRule
    from dtlint.check.cache import Cache

__all__ = ["in_processes"]

SHARE = 24
"""A process is started for this many files at least."""
HANDS = 4
"""Shares that each process gets in turn, so that none is left waiting for the slowest."""

_rules: Mapping[str, AnyRule] = {}
_mode = Mode()
_cache: Cache | None = None


def in_processes(
    jobs: Sequence[Job],
    rules: Mapping[str, AnyRule],
    mode: Mode,
    cache: Cache | None,
    workers: int | None = None,
) -> Iterator[tuple[Job, Result]]:
    """The result of each job, in the order in which they are ready."""
    count = min(workers or _cores(), max(len(jobs) // SHARE, 1))
    enabled = {code for job in jobs for code in job.codes}
    rules = {code: rule for code, rule in rules.items() if code in enabled}
    lost: list[Job] = []
    pool = _pool(count, rules, mode, cache)
    try:
        shares: dict[Future[list[Result]], list[Job]] = {
            pool.submit(_work, share): share for share in _deal(jobs, count * HANDS)
        }
        for future in as_completed(shares):
            try:
                yield from zip(shares[future], future.result(), strict=True)
            except BrokenProcessPool:
                lost += shares[future]
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
    yield from _one_by_one(lost, rules, mode, cache)


def _one_by_one(
    jobs: Sequence[Job], rules: Mapping[str, AnyRule], mode: Mode, cache: Cache | None
) -> Iterator[tuple[Job, Result]]:
    """Files that were in the hands of a dead process, each alone: so the one that killed it is known."""
    pool: ProcessPoolExecutor | None = None
    for job in jobs:
        pool = pool or _pool(1, rules, mode, cache)
        try:
            yield job, pool.submit(_work, [job]).result()[0]
        except BrokenProcessPool:
            pool.shutdown()
            pool = None
            yield (
                job,
                Result(errors=[f"{job.shown}: internal error: the process that checked it died; please report it"]),
            )
    if pool is not None:
        pool.shutdown()


def _pool(count: int, rules: Mapping[str, AnyRule], mode: Mode, cache: Cache | None) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(count, _context(rules), _start, (rules, mode, cache))


def _context(rules: Mapping[str, AnyRule]) -> BaseContext:
    """Forking spares each process the imports. It is safe on Linux in a program that has one thread."""
    if sys.platform != "linux" or threading.active_count() > 1:
        return multiprocessing.get_context("spawn")
    _prepare(rules.values())
    return multiprocessing.get_context("fork")


def _prepare(rules: Iterable[AnyRule]) -> None:
    """Load what some file of so many will need, while there is one process to do it: the table of ops, the rules."""
    from dtlint.check import audience, confirm, file, judge  # noqa: F401
    from dtlint.dtypes import table

    table.load()
    loaded = []
    for rule in filter(_hears, rules):
        with suppress(Exception):  # a file that wants the rule reports why it cannot be loaded
            loaded.append(rule.load())
    audience.expect(loaded)


def _hears(rule: AnyRule) -> bool:
    return bool(rule.hears())


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _deal(jobs: Sequence[Job], count: int) -> list[list[Job]]:
    """Shares of about equal size in bytes, the largest files first."""
    shares: list[list[Job]] = [[] for _ in range(count)]
    loads = [(0, number) for number in range(count)]
    for size, job in sorted(((_size(job), job) for job in jobs), key=lambda sized: -sized[0]):
        load, number = heapq.heappop(loads)
        shares[number].append(job)
        heapq.heappush(loads, (load + size, number))
    return [share for share in shares if share]


def _size(job: Job) -> int:
    try:
        return job.path.stat().st_size
    except OSError:
        return 0


def _start(rules: Mapping[str, AnyRule], mode: Mode, cache: Cache | None) -> None:
    global _rules, _mode, _cache
    search_seldom()
    _rules, _mode, _cache = rules, mode, cache


def _work(jobs: list[Job]) -> list[Result]:
    reader = Reader(job.path for job in jobs)
    return [finish(job, _rules, _mode, _cache, reader) for job in jobs]
