"""Processes that read: each text in one of its own, forked from one that has read before what the text imports.

A *hub* takes tasks and forks a process for each. The first hub has read nothing. When a file has been read, it forks another
for that file, which reads the modules that the file has led to and that do not rest on it, and is a hub itself: reading the
file again from there costs what its own text costs. A task that is overtaken is killed with its process.

What was read beforehand holds while the disk, and the texts of open files, give the same answers as they did then; else the
hub is dropped, and the file is read from the beginning. So the hub of a file reads nothing that rests on another open file,
which may change with the next keystroke. A second hub, forked from it, reads that as well, and is dropped alone.

Where processes cannot fork, all is read from the beginning, one task after the other, and tasks that are overtaken before
they begin are left out.
"""

from __future__ import annotations

import gc
import os
import pickle
import selectors
import signal
import struct
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dtlint.check.garbage import search_seldom
from dtlint.check.reader import Reader
from dtlint.infer.interproc.disk import Disk
from dtlint.server.tasks import Answer, Reading, Task, find_rules, load_all

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from dtlint.infer.interproc.file_reading import Independent

__all__ = ["Overtaken", "main", "receive", "send"]

_MOST_HUBS = 3
"""Files whose imports are kept. Of a large library they take some hundred megabytes."""
_DEEPEST = 10_000
"""Frames that running the bodies of modules may take, as in `check.file`."""
_QUIET = 0.25
"""Seconds without a change before the project is read."""
_NICE = 10
"""How far what is not waited for gives way."""
_LONGEST = 60
"""Seconds of CPU that the project may take."""
_WORTH_A_HUB = 0.03
"""Seconds that reading a file has to take for its imports to be read beforehand."""


class Overtaken(NamedTuple):
    """What is read for this key is not wanted any more."""

    key: str


class _Finished(NamedTuple):
    """A process has read a file.

    Attributes:
        steady: the modules that can be read beforehand another time, whichever open files change.
        modules: those that can be where this file alone changes.
    """

    task: Task
    steady: Independent | None
    modules: Independent | None
    seconds: float


class _Ready(NamedTuple):
    """A hub can take tasks."""


class _Stale(NamedTuple):
    """A hub has read what is so no more; the task is not done."""

    task: Task


def send(stream: BinaryIO, message: object) -> None:
    """Write a message for `receive`."""
    stream.write(_framed(message))
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    """The next message of a stream, unpacked if it was packed for hubs to hand on; None at its end."""
    head = _exactly(stream, 8)
    data = None if head is None else _exactly(stream, struct.unpack(">Q", head)[0])
    message = None if data is None else pickle.loads(data)
    return pickle.loads(message) if isinstance(message, bytes) else message


def _exactly(stream: BinaryIO, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        more = stream.read(size - len(data))
        if not more:
            return None
        data += more
    return bytes(data)


def _framed(message: object) -> bytes:
    data = pickle.dumps(message)
    return struct.pack(">Q", len(data)) + data


def _answers(task: Task, reader: Reader, give: Callable[[Any], None], goes_on: Callable[[], bool]) -> None:
    """Find the answers to a task, and give each as it is ready.

    Args:
        goes_on: is the project to be read, too, when the file has been left alone for a moment?
    """
    reading = Reading(task, reader)
    if task.fix:
        give(reading.fixed())
        return
    before = time.process_time()
    give(reading.checked())
    seconds = time.process_time() - before
    give(reading.inferred())
    file_reading, steady, modules = reader.reading(task.path), None, None
    if file_reading is not None and task.path is not None:
        steady, modules = (file_reading.independent(changing) for changing in ({task.path, *task.open}, {task.path}))
    give(_Finished(task, steady, modules, seconds))
    time.sleep(_QUIET)
    if goes_on():
        give(reading.whole_project())


def _gives_way() -> bool:
    """From now on this process gives way to others, and takes no longer than it may."""
    with suppress(OSError):
        os.nice(_NICE)
    with suppress(ImportError):
        import resource

        spent = int(time.process_time())
        resource.setrlimit(resource.RLIMIT_CPU, (spent + _LONGEST, spent + _LONGEST + 1))
    return True


def _cold(task: Task) -> Reader:
    expected = [] if task.path is None else [task.path]
    return Reader(expected, Disk(task.unsaved), for_people=True)


class _Beforehand:
    """What a file imports, read before the file is.

    Raises:
        LookupError: it leads back to the file.
    """

    def __init__(self, task: Task, modules: Independent) -> None:
        assert task.path is not None
        self._unsaved = dict(task.unsaved)
        self._disk = Disk(self._unsaved)
        self.reader = Reader([task.path], self._disk, for_people=True)
        self.read(task, modules)

    def read(self, task: Task, modules: Independent) -> None:
        """Read modules beside those that were read so far, which hold.

        Raises:
            LookupError: they lead back to the file.
        """
        assert task.path is not None
        reader = self.begin(task)
        sys.setrecursionlimit(max(sys.getrecursionlimit(), _DEEPEST))
        load_all(task)
        reader.prepare(task.path, modules)
        self.modules = frozenset((*modules.by_body, *modules.by_functions))
        reading = reader.reading(task.path)
        answers = self._disk.answers()
        self._contents: dict[str, str | None] = answers.pop("contents")
        self._questions = {**answers, "contents": {}}
        self._stamps = {path: _stamp(path) for path in self._contents}
        if reading is None or reading.holds(task.path) or not self._holds_by_content(task):
            raise LookupError
        gc.collect()
        gc.freeze()  # a search for garbage would write into every page, and each process would have its own of it

    def holds(self, task: Task) -> bool:
        """Would the same be read now?"""
        known, now = self._unsaved, task.unsaved
        disk = Disk(now)
        touched = {path for path in {*known, *now} if known.get(path) != now.get(path)}
        return (
            all(disk.digest(path) == self._contents[path] for path in touched.intersection(self._contents))
            and all(_stamp(path) == stamp for path, stamp in self._stamps.items() if path not in now)
            and disk.gives(self._questions)
        )

    def _holds_by_content(self, task: Task) -> bool:
        """Has nothing changed while it was read? The stamps are newer than what was read."""
        return Disk(task.unsaved).gives({**self._questions, "contents": self._contents})

    def begin(self, task: Task) -> Reader:
        """What reads the file from here, once."""
        self._unsaved.clear()
        self._unsaved.update(task.unsaved)
        return self.reader


def _slot(task: Task) -> str:
    """What a process reads for: one that makes fixes is beside the one that looks."""
    return f"{task.key}\0fix" if task.fix else task.key


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


@dataclass(eq=False)
class _Child:
    """A process that was forked from here.

    Attributes:
        inbox: where it takes tasks, if it is a hub; never waited for, since it may wait for its answers to be taken.
        modules: what it reads beforehand, if it is a hub.
        is_ready: is it a hub that has read all that?
        handed: the task that it has got last, if it is a hub.
    """

    pid: int
    inbox: int
    outbox: int
    key: str
    modules: frozenset[str] = frozenset()
    is_ready: bool = False
    handed: Task | None = None
    waiting: bytearray = field(default_factory=bytearray)
    received: bytearray = field(default_factory=bytearray)

    def messages(self, data: bytes) -> list[Any]:
        """The messages that are whole by now."""
        self.received += data
        found = []
        while len(self.received) >= 8:
            (size,) = struct.unpack_from(">Q", self.received)
            if len(self.received) < 8 + size:
                break
            found.append(pickle.loads(bytes(self.received[8 : 8 + size])))
            del self.received[: 8 + size]
        return found


class _Hub:
    """Takes tasks, and forks a process for each."""

    def __init__(self, inbox: BinaryIO, outbox: BinaryIO, beforehand: _Beforehand | None = None) -> None:
        self._inbox, self._outbox, self._beforehand = inbox, outbox, beforehand
        self._selector = selectors.DefaultSelector()
        self._selector.register(inbox, selectors.EVENT_READ)
        self._reading: dict[str, _Child] = {}
        self._hubs: dict[str, _Child] = {}
        self._waiting: dict[str, Task] = {}
        """Tasks that are not begun yet: the file is read for the first time, which is worth its end, or its hub prepares."""
        self._known: set[str] = set()
        """The files that were read to their ends."""

    def serve(self) -> None:
        """Work until whoever sends tasks is gone, or has had enough."""
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit())
        try:
            self._serve()
        finally:
            for child in (*self._reading.values(), *self._hubs.values()):
                self._end(child)

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                child = key.data
                if child is None:
                    message = receive(self._inbox)
                    if message is None:
                        return
                    self._take(message)
                elif key.fd == child.inbox:
                    self._hand_on(child)
                elif key.fd in self._selector.get_map():  # not ended by what came before it
                    self._hear(child)

    # -- tasks -----------------------------------------------------------------------------------------------------------

    def _take(self, message: Any) -> None:
        if isinstance(message, Path):
            os.chdir(message)  # what messages call files is relative to it
            return
        if isinstance(message, Overtaken):
            self._waiting.pop(message.key, None)
            for slot in (message.key, f"{message.key}\0fix"):
                self._end(self._reading.pop(slot, None))
            hub = self._hubs.get(message.key)
            if hub is not None and hub.is_ready:
                self._hand(hub, message)
            return
        task: Task = message
        if task.fix:
            self._read(task)
            return
        is_outermost = self._beforehand is None
        hub = self._hubs.get(task.key)
        if hub is not None and not hub.is_ready and not is_outermost:  # to read from here takes no longer than to wait
            self._end(self._hubs.pop(task.key))
            hub = None
        is_first = is_outermost and task.key in self._reading and task.key not in self._known
        if is_first or (hub is not None and not hub.is_ready):
            self._waiting[task.key] = task
            return
        self._end(self._reading.pop(task.key, None))
        if hub is not None:
            hub.handed = task
            self._hubs[task.key] = self._hubs.pop(task.key)  # the one that was used last goes last
            self._hand(hub, task)
        else:
            self._read(task)

    def _hand(self, hub: _Child, message: object) -> None:
        hub.waiting += _framed(message)
        if hub.inbox not in self._selector.get_map():
            self._selector.register(hub.inbox, selectors.EVENT_WRITE, hub)

    def _hand_on(self, hub: _Child) -> None:
        """Write as much as a hub takes."""
        try:
            written = os.write(hub.inbox, hub.waiting)
        except BlockingIOError:
            return
        except OSError:  # it is gone, as will be heard
            written = len(hub.waiting)
        del hub.waiting[:written]
        if not hub.waiting:
            self._selector.unregister(hub.inbox)

    def _read(self, task: Task) -> None:
        """Read a text in a new process."""
        beforehand = self._beforehand
        if beforehand is not None and not beforehand.holds(task):
            send(self._outbox, _Stale(task))
            return

        def work(inbox: BinaryIO, outbox: BinaryIO) -> None:
            reader = _cold(task) if beforehand is None or task.fix else beforehand.begin(task)

            def give(answer: Answer | _Finished) -> None:  # as bytes, which the hubs on the way hand on as they are
                send(outbox, pickle.dumps(answer) if isinstance(answer, Answer) else answer)

            _answers(task, reader, give, _gives_way)

        slot = _slot(task)
        self._end(self._reading.pop(slot, None))
        self._reading[slot] = self._fork(task, slot, work)

    def _prepare(self, task: Task, modules: Independent) -> None:
        """Make a hub for a file."""

        def work(inbox: BinaryIO, outbox: BinaryIO) -> None:
            beforehand = self._beforehand
            try:
                if beforehand is None:
                    beforehand = _Beforehand(task, modules)
                else:
                    beforehand.read(task, modules)
            except LookupError:
                return
            send(outbox, _Ready())
            _Hub(inbox, outbox, beforehand).serve()

        self._end(self._hubs.pop(task.key, None))
        while len(self._hubs) >= _MOST_HUBS:
            self._end(self._hubs.pop(next(iter(self._hubs))))
        self._hubs[task.key] = child = self._fork(task, task.key, work)
        child.modules = frozenset((*modules.by_body, *modules.by_functions))

    # -- children --------------------------------------------------------------------------------------------------------

    def _fork(self, task: Task, key: str, work: Callable[[BinaryIO, BinaryIO], None]) -> _Child:
        to_child, from_child = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                os.close(to_child[1])
                os.close(from_child[0])
                for child in (*self._reading.values(), *self._hubs.values()):
                    os.close(child.outbox)
                    os.close(child.inbox)
                self._selector.close()
                with suppress(BrokenPipeError):
                    work(os.fdopen(to_child[0], "rb", buffering=0), os.fdopen(from_child[1], "wb"))
                code = 0
            except SystemExit:
                code = 0
            except BaseException as error:
                sys.stderr.write(f"dtlint: reading {task.shown}: {type(error).__name__}: {error}\n")
            finally:
                with suppress(OSError):
                    sys.stderr.flush()
                os._exit(code)
        os.close(to_child[0])
        os.close(from_child[1])
        os.set_blocking(to_child[1], False)
        child = _Child(pid, to_child[1], from_child[0], key)
        self._selector.register(child.outbox, selectors.EVENT_READ, child)
        return child

    def _hear(self, child: _Child) -> None:
        try:
            data = os.read(child.outbox, 1 << 20)
        except OSError:
            data = b""
        if not data:
            self._gone(child)
            return
        for message in child.messages(data):
            if isinstance(message, _Ready):
                child.is_ready = True
                self._go_on(child.key)
            elif isinstance(message, _Stale):
                if self._hubs.get(child.key) is child:
                    self._end(self._hubs.pop(child.key))
                self._known.discard(child.key)
                self._read(message.task)
            elif isinstance(message, _Finished):
                self._finished(child, message)
            else:
                send(self._outbox, message)

    def _finished(self, child: _Child, message: _Finished) -> None:
        """Make a hub for a file that was read, unless there is one that has read what it needs."""
        beforehand, hub = self._beforehand, self._hubs.get(child.key)
        wanted = message.steady if beforehand is None else message.modules
        held = frozenset[str]() if beforehand is None else beforehand.modules
        held |= frozenset[str]() if hub is None else hub.modules
        if beforehand is None:
            self._known.add(child.key)
        else:
            send(self._outbox, message)
        is_worth_it = message.seconds > _WORTH_A_HUB
        if wanted is not None and is_worth_it and not held.issuperset(wanted.by_body + wanted.by_functions):
            self._prepare(message.task, wanted)
        else:
            self._go_on(child.key)

    def _gone(self, child: _Child) -> None:
        """A process has ended by itself."""
        for children in (self._reading, self._hubs):
            if children.get(child.key) is child:
                del children[child.key]
        self._end(child)
        if child.handed is not None:
            self._waiting.setdefault(child.key, child.handed)
        self._go_on(child.key)

    def _go_on(self, key: str) -> None:
        """Do what has waited for a file."""
        task = self._waiting.pop(key, None)
        if task is not None:
            self._take(task)

    def _end(self, child: _Child | None) -> None:
        if child is None:
            return
        for end in (child.inbox, child.outbox):
            if end in self._selector.get_map():
                self._selector.unregister(end)
            os.close(end)
        with suppress(ProcessLookupError):  # a hub ends its own processes
            os.kill(child.pid, signal.SIGTERM if child.is_ready else signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(child.pid, 0)


def _one_after_the_other(inbox: BinaryIO, outbox: BinaryIO) -> None:
    """The same without forking: tasks that are overtaken before they begin are left out."""
    import threading
    from collections import OrderedDict

    waiting: OrderedDict[tuple[str, bool], Task] = OrderedDict()
    there = threading.Condition()
    ended = False

    def listen() -> None:
        nonlocal ended
        while (message := receive(inbox)) is not None:
            with there:
                if isinstance(message, Task):
                    waiting.pop((message.key, message.fix), None)
                    waiting[message.key, message.fix] = message
                elif isinstance(message, Path):
                    os.chdir(message)
                else:
                    waiting.pop((message.key, False), None)
                there.notify()
        with there:
            ended = True
            there.notify()

    threading.Thread(target=listen, daemon=True).start()
    while True:
        with there:
            while not waiting and not ended:
                there.wait()
            if ended:
                return
            _, task = waiting.popitem(last=False)

        def give(answer: Any) -> None:
            if not isinstance(answer, _Finished):
                send(outbox, answer)

        _answers(task, _cold(task), give, lambda: not waiting)


def main() -> None:
    """Be the process that reads: tasks come on standard input, answers go to standard output."""
    inbox = os.fdopen(os.dup(0), "rb", buffering=0)
    outbox = os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)  # what anything prints is no answer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the editor's Ctrl-C is the server's to answer
    search_seldom()
    find_rules()
    with suppress(BrokenPipeError):
        if hasattr(os, "fork"):
            _Hub(inbox, outbox).serve()
        else:
            _one_after_the_other(inbox, outbox)
