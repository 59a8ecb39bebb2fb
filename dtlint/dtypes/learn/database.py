"""The operator database that torch ships for its own tests: its entries, and the calls that it makes of each.

It is `op_db` of `torch.testing._internal.common_methods_invocations`, which needs the package expecttest.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Any

from dtlint.dtypes.learn.extras import FURTHER
from dtlint.dtypes.learn.names import names_of
from dtlint.dtypes.learn.op import Op, op_of
from dtlint.dtypes.learn.samples import samples_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["database", "database_ops", "names_of_database"]


@cache
def database() -> tuple[Any, ...]:
    """The entries of the operator database."""
    from torch.testing._internal.common_methods_invocations import op_db  # takes seconds

    return tuple(op_db)


def names_of_database() -> list[str]:
    """The names of the entries of the operator database."""
    return sorted({info.name for info in database()})


def database_ops(only: Sequence[str] = ()) -> Iterator[tuple[str, list[Op]]]:
    """The entries of the operator database by name, with an op for each public name that they are about."""
    entries: dict[str, list[Any]] = defaultdict(list)
    for info in database():
        entries[info.name].append(info)
    for name, infos in sorted(entries.items()):
        if only and name not in only:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            calls = [call for info in infos for call in samples_of(info)]
            calls += [made() for made in FURTHER.get(name, ())]
        publics = dict.fromkeys(public for info in infos for public in names_of(info))
        yield name, [op_of(public, calls) for public in publics]
