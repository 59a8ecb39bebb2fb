"""Several processes over many files: work dealt out by size, and a process that dies costs one file its result."""

from __future__ import annotations

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
from dtlint.check.project import ProjectFindings, project_findings
from dtlint.check.reader import Reader
from dtlint.infer.interproc.disk import Disk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from multiprocessing.context import BaseContext
    from pathlib import Path

    from dtlint.catalogue import AnyRule
    from dtlint.check.cache import Cache

__all__ = ["in_processes", "with_project"]

SHARE = 24
"""A process is started for this many files at least."""
HANDS = 4
"""Shares that each process gets in turn, so that none is left waiting for the slowest."""

_rules: Mapping[str, AnyRule] = {}
_mode = Mode()
_cache: Cache | None = None
_reader = Reader()


def in_processes(
    jobs: Sequence[Job],
    rules: Mapping[str, AnyRule],
    mode: Mode,
    cache: Cache | None,
    workers: int | None = None,
) -> dict[Path, Result]:
    """The result of each job."""
    return _checked(jobs, rules, mode, cache, workers, None)[0]


def with_project(
    jobs: Sequence[Job],
    project: Sequence[Job],
    rules: Mapping[str, AnyRule],
    mode: Mode,
    cache: Cache | None,
    workers: int | None = None,
) -> tuple[dict[Path, Result], ProjectFindings]:
    """The result of each job, and what is found by reading the programs of a project, in one of the processes."""
    found, known = _checked(jobs, rules, mode, cache, workers, project)
    return found, known or _alone(project, rules, mode, cache)


def _checked(
    jobs: Sequence[Job],
    rules: Mapping[str, AnyRule],
    mode: Mode,
    cache: Cache | None,
    workers: int | None,
    project: Sequence[Job] | None,
) -> tuple[dict[Path, Result], ProjectFindings | None]:
    """The result of each job; and what is found by reading the programs of a project, where one is given and its process lives."""
    count = min(workers or _cores(), max(len(jobs) // SHARE, 1))
    enabled = {code for job in (*jobs, *(project or ())) for code in job.codes}
    rules = {code: rule for code, rule in rules.items() if code in enabled}
    lost: list[Job] = []
    found: dict[Path, Result] = {}
    known: Future[ProjectFindings] | None = None
    pool = _pool(count, rules, mode, cache, tuple(job.path for job in jobs))
    try:
        shares: dict[Future[list[Result]], list[Job]] = {}
        if project is not None:  # the first, for it may take the longest
            known = pool.submit(_read, project)
        for share in _deal(jobs, count * HANDS):
            try:
                shares[pool.submit(_work, share)] = share
            except BrokenProcessPool:  # a process has died before all shares were dealt out
                lost += share
        for future in as_completed(shares):
            try:
                found.update(zip((job.path for job in shares[future]), future.result(), strict=True))
            except BrokenProcessPool:
                lost += shares[future]
        findings = None if known is None or known.exception() is not None else known.result()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
    found.update((job.path, result) for job, result in _one_by_one(lost, rules, mode, cache))
    return found, findings


def _one_by_one(
    jobs: Sequence[Job], rules: Mapping[str, AnyRule], mode: Mode, cache: Cache | None
) -> Iterator[tuple[Job, Result]]:
    """Files that were in the hands of a dead process, each alone: so the one that killed it is known."""
    pool: ProcessPoolExecutor | None = None
    for job in jobs:
        pool = pool or _pool(1, rules, mode, cache, (job.path,))
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


def _alone(project: Sequence[Job], rules: Mapping[str, AnyRule], mode: Mode, cache: Cache | None) -> ProjectFindings:
    """The project again, whose process has died, perhaps by one of the files that it checked as well."""
    pool = _pool(1, rules, mode, cache, ())
    try:
        return pool.submit(_read, project).result()
    except BrokenProcessPool:
        died = "internal error: the process that read the project died; please report it"
        return ProjectFindings(errors=[died])
    finally:
        pool.shutdown()


def _pool(
    count: int, rules: Mapping[str, AnyRule], mode: Mode, cache: Cache | None, expected: tuple[Path, ...]
) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(count, _context(rules), _start, (rules, mode, cache, expected))


def _context(rules: Mapping[str, AnyRule]) -> BaseContext:
    """Forking spares each process the imports. It is safe on Linux in a program that has one thread."""
    if sys.platform != "linux" or threading.active_count() > 1:
        return multiprocessing.get_context("spawn")
    _prepare(rules.values())
    return multiprocessing.get_context("fork")


def _prepare(rules: Iterable[AnyRule]) -> None:
    """Load what some file of so many will need, while there is one process to do it: the engine, the table of ops, the
    rules."""
    from dtlint.check import confirm, file, judge  # noqa: F401
    from dtlint.dtypes import table
    from dtlint.infer.interproc import file_reading  # noqa: F401

    table.load()
    for rule in rules:
        if rule.asks():
            with suppress(Exception):  # a file that wants the rule reports why it cannot be loaded
                rule.load()


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _deal(jobs: Sequence[Job], count: int) -> list[list[Job]]:
    """Shares of about equal size in bytes, of files that lie beside one another: these import the same."""
    sized = [(_size(job), job) for job in sorted(jobs, key=lambda job: job.path)]
    most = sum(size for size, _ in sized) / count
    shares: list[list[Job]] = [[]]
    load = 0
    for size, job in sized:
        if shares[-1] and load + size / 2 > most and len(shares) < count:
            shares.append([])
            load = 0
        shares[-1].append(job)
        load += size
    return shares


def _size(job: Job) -> int:
    try:
        return job.path.stat().st_size
    except OSError:
        return 0


def _start(rules: Mapping[str, AnyRule], mode: Mode, cache: Cache | None, expected: tuple[Path, ...]) -> None:
    global _rules, _mode, _cache, _reader
    search_seldom()
    _rules, _mode, _cache, _reader = rules, mode, cache, Reader(expected)


def _work(jobs: list[Job]) -> list[Result]:
    return [finish(job, _rules, _mode, _cache, _reader) for job in jobs]


def _read(project: Sequence[Job]) -> ProjectFindings:
    return project_findings(project, _rules, Disk(), _cache)
