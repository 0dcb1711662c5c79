"""A simulated disk: which writes, names and removals a power cut keeps, and what fails or ends a process at which one.

Files lie in a real folder, preferably of a memory file system. Beside it the disk keeps what was forced to it
(`durable`) and the writes since, in order. After a power cut the folder is made again from the first and a random part
of the second, in sectors of 512 bytes; names follow in their order, as in a journaling file system.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tools.simulate import vfs
from tools.simulate.scheduling import Killed, Scheduler, SimulatedProcess

SECTOR = 512

BEFORE, AMID, AFTER, CUT = "kill before", "kill amid", "kill after", "power cut"
DEATHS = (BEFORE, AMID, AFTER, CUT)
ERRORS = {"EIO": errno.EIO, "ENOSPC": errno.ENOSPC, "EDQUOT": errno.EDQUOT}


@dataclass(frozen=True, slots=True)
class DiskFault:
    """A death or an error at the crossing of this kind with this number, and, if an error, at those that follow."""

    kind: str
    number: int
    name: str
    lasting: int = 1

    def __str__(self) -> str:
        return f"{self.name} at {self.kind} {self.number}" + (f" and {self.lasting - 1} more" * (self.lasting > 1))


@dataclass(eq=False)
class Content:
    """The bytes of a file that are on the disk, None if none ever were, and the writes since.

    `is_database`: SQLite writes it, so that its writes are known; another file is compared with what it holds.
    """

    durable: bytearray | None
    is_database: bool = False
    names_folder: bool = False
    writes: list[tuple[int, bytes | None]] = field(default_factory=list)

    def sync(self) -> None:
        for offset, content in self.writes:
            self.durable = _written(self.durable, offset, content)
        self.writes.clear()

    def after_cut(self, stream: random.Random, found: bytes | None) -> bytes | None:
        """The content after a power cut, which lost some of the later writes; None: no file that was ever written."""
        if not self.is_database:
            return _torn(self.durable, found, stream)
        kept = stream.choice((0.0, 0.2, 0.5, 0.8, 1.0))
        content = self.durable
        for offset, written in self.writes:
            if written is None:
                content = _written(content, offset, None) if stream.random() < kept else content
                continue
            for start in range(0, len(written), SECTOR):
                if stream.random() < kept:
                    content = _written(content, offset + start, written[start : start + SECTOR])
        return bytes(content or b"")


def _written(content: bytearray | None, offset: int, written: bytes | None) -> bytearray:
    content = bytearray() if content is None else content
    if written is None:  # truncated to `offset`
        return content[:offset]
    if len(content) < offset:
        content = content + bytes(offset - len(content))
    content[offset : offset + len(written)] = written
    return content


def _torn(durable: bytearray | None, found: bytes | None, stream: random.Random) -> bytes | None:
    """A file that was not forced to the disk since it changed."""
    if found is None:
        return None if durable is None else bytes(durable)
    if durable is not None and durable == found:
        return found
    old, kept = bytes(durable or b""), stream.choice((0.0, 0.5, 1.0))
    length = stream.choice((len(old), len(found)))
    sectors = []
    for start in range(0, length, SECTOR):
        source = found if stream.random() < kept else old
        sectors.append(source[start : start + SECTOR].ljust(min(SECTOR, length - start), b"\0"))
    return b"".join(sectors)


@dataclass(eq=False)
class OpenFile:
    """A file that SQLite has open, and the process that opened it."""

    path: Path
    content: Content
    process: SimulatedProcess | None


class Disk:
    """The disk under a folder, as SQLite's layer and `hapax.kb.files.system` use it.

    `faults` come in the order of their crossings; `crossings` counts these by kind since `restart`.
    """

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.random = random.Random(f"disk {seed}")  # noqa: S311  no secret
        self.scheduler: Scheduler | None = None
        self.faults: list[DiskFault] = []
        self.crossings: Counter[str] = Counter()
        self.injected: Counter[str] = Counter()
        self.is_cut = False
        self._error: tuple[int, int] | None = None
        self._names: dict[Path, Content] = {}
        self._renamings: list[tuple[Path | None, Path | None, Content | None]] = []
        self._by_number: dict[int, Content] = {}

    def restart(self, scheduler: Scheduler, faults: list[DiskFault]) -> None:
        """Begin another run: whatever is in the folder is on the disk."""
        self.scheduler, self.faults, self.is_cut, self._error = scheduler, list(faults), False, None
        self.crossings = Counter()
        self._names, self._renamings, self._by_number = {}, [], {}
        for path in _files(self.root):
            self._names[path] = self._by_number[path.stat().st_ino] = Content(bytearray(path.read_bytes()))

    # -- faults

    def cross(self, kind: str, perform: Callable[[], object], amid: Callable[[], object] | None = None) -> int:
        """Perform an operation, or kill its process before, amid or after it; returns an error's number, 0 for none.

        Raises Killed in a process that is dead, whose operations have no effect.
        """
        scheduler = self.scheduler
        if scheduler is None or scheduler.me is None:
            perform()
            return 0
        scheduler.cross()
        process = scheduler.me.process
        self.crossings[kind] += 1
        fault = next(
            (fault for fault in self.faults if fault.kind == kind and fault.number == self.crossings[kind]), None
        )
        if fault is not None and fault.name in ERRORS:
            self._error = (ERRORS[fault.name], fault.lasting)
            self.injected[fault.name] += 1
        if self._error is not None and kind != "sleep":
            number, left = self._error
            self._error = (number, left - 1) if left > 1 else None
            # A full disk takes no writes, and forgets none.
            if kind.startswith("write") or (number == errno.EIO and kind.startswith("sync")):
                return number
        if fault is None or fault.name in ERRORS:
            perform()
            return 0
        self.injected[f"{fault.name}, {kind}"] += 1
        if fault.name == AFTER or (fault.name == CUT and self.random.random() < 0.5):
            perform()
        elif fault.name == AMID:
            (amid or perform)()
        self.is_cut = self.is_cut or fault.name == CUT
        if fault.name == CUT:
            scheduler.kill_all()
        scheduler.kill(process)
        raise Killed

    def sqlite(self, kind: str, file: OpenFile | None, perform: Callable[[], int], code: int, **more: object) -> int:
        """As `cross`, for SQLite: returns its code, for errors of this kind `code`."""
        if file is not None and file.process is not None and file.process.is_dead:
            return code
        done: list[int] = []
        try:
            number = self.cross(kind, lambda: done.append(perform()), **more)  # type: ignore[arg-type]
        except Killed:
            return code
        if number == errno.ENOSPC:
            return vfs.FULL
        return code if number else done[0]

    # -- SQLite's files

    def opened(self, path: Path, is_new: bool) -> OpenFile:
        number = path.stat().st_ino
        if is_new or number not in self._by_number:
            self._by_number[number] = Content(bytearray() if is_new else bytearray(path.read_bytes()))
            if is_new:
                self._renamings.append((None, path, self._by_number[number]))
        content = self._by_number[number]
        content.is_database = True
        # SQLite forces the name of a new log or journal to the disk along with its content.
        content.names_folder |= is_new and path.name.endswith(("-wal", "-journal"))
        thread = self.scheduler.me if self.scheduler else None
        return OpenFile(path, content, thread.process if thread else None)

    def write(self, file: OpenFile, content: bytes, offset: int, perform: Callable[..., int]) -> int:
        def whole() -> int:
            file.content.writes.append((offset, content))
            return perform()

        def part() -> int:
            size = self.random.randrange(1, max(2, len(content)))
            file.content.writes.append((offset, content[:size]))
            return perform(size)

        return self.sqlite(f"write {_kind(file.path)}", file, whole, vfs.IOERR_WRITE, amid=part)

    def truncate(self, file: OpenFile, size: int, perform: Callable[[], int]) -> int:
        def cut_off() -> int:
            file.content.writes.append((size, None))
            return perform()

        return self.sqlite("truncate", file, cut_off, vfs.IOERR_WRITE)

    def sync(self, file: OpenFile, perform: Callable[[], int]) -> int:
        def force() -> int:
            file.content.sync()
            if file.content.names_folder:
                self._sync_names()
            return perform()

        code = self.sqlite(f"sync {_kind(file.path)}", file, force, vfs.IOERR_FSYNC)
        if code != vfs.OK and not (file.process and file.process.is_dead):
            # After a failed sync the system forgets which writes are not on the disk.
            file.content.durable = bytearray(file.content.after_cut(self.random, None) or b"")
            file.content.writes.clear()
        return code

    def delete(self, path: Path, perform: Callable[[], int]) -> int:
        def unlink() -> int:
            self._forget(path)
            return perform()

        return self.sqlite("delete", None, unlink, vfs.IOERR_DELETE)

    def sleep(self, microseconds: int) -> None:
        if self.scheduler is not None and self.scheduler.me is not None:
            try:
                self.scheduler.wait(microseconds / 1e6, lambda: False)
            except Killed:
                return  # the next operation fails

    # -- other files, in the place of the functions of `hapax.kb.files.system`

    def write_file(self, file: int, content: bytes) -> None:
        def part() -> None:
            os.write(file, content[: self.random.randrange(1, max(2, len(content)))])

        _raise(self.cross("write file", lambda: _write_all(file, content), part))

    def sync_file(self, file: int) -> None:
        def force() -> None:
            status = os.fstat(file)
            content = self._by_number.setdefault(status.st_ino, Content(None))
            content.durable = bytearray(os.pread(file, status.st_size, 0))

        _raise(self.cross("sync file", force))

    def sync_folder(self, folder: Path) -> None:
        def force() -> None:
            if not folder.is_relative_to(self.root):
                return  # the user's journal, on another disk
            for path in _files(folder):
                if path.parent == folder and path not in self._present():
                    self._renamings.append((None, path, self._content(path)))
            self._sync_names()

        _raise(self.cross("sync folder", force))

    def rename(self, source: Path, target: Path, folders: tuple[int, int] | None = None) -> None:  # noqa: ARG002
        def move() -> None:
            present = self._present()
            for path in _files(source) if source.is_dir() else (source,):
                if path not in present and path.exists():
                    self._renamings.append((None, path, self._content(path)))
            source.replace(target)
            self._renamings.append((source, target, None))

        _raise(self.cross("rename", move))

    def remove(self, path: Path) -> None:
        def unlink() -> None:
            self._forget(path)
            path.unlink(missing_ok=True)

        _raise(self.cross("remove", unlink))

    def remove_folder(self, folder: Path, parent: int) -> None:  # noqa: ARG002  as in `system`
        def unlink() -> None:
            for path in list(_files(folder)):
                self._forget(path)
            shutil.rmtree(folder, ignore_errors=True)

        def part() -> None:
            for path in list(_files(folder))[::2]:
                self._forget(path)
                path.unlink()

        _raise(self.cross("remove folder", unlink, part))

    # -- power cuts

    def cut(self) -> None:
        """Make the folder again as a power cut leaves it."""
        names = dict(self._names)
        for renaming in self._renamings[: self.random.choice((0, len(self._renamings), self._some()))]:
            _rename(names, renaming)
        current = self._present()
        found = {content: path for path, content in current.items()}
        for path in _files(self.root):
            if path not in current and self.random.random() < 0.5:
                names[path] = self._content(path)
                found[names[path]] = path
        remains: dict[Path, bytes] = {}
        for path, content in names.items():
            place = found.get(content)  # none if another file took its name
            stored = place.read_bytes() if place and place.is_file() and not content.is_database else None
            remaining = content.after_cut(self.random, stored)
            if remaining is not None and not path.name.endswith("-shm"):
                remains[path] = remaining
        shutil.rmtree(self.root)
        self.root.mkdir()
        for path, remaining in remains.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(remaining)

    def _some(self) -> int:
        return self.random.randint(0, len(self._renamings))

    def _content(self, path: Path) -> Content:
        return self._by_number.setdefault(path.stat().st_ino, Content(None))

    def _present(self) -> dict[Path, Content]:
        """The names that the processes see, as far as the disk knows them."""
        names = dict(self._names)
        for renaming in self._renamings:
            _rename(names, renaming)
        return names

    def _forget(self, path: Path) -> None:
        if path.exists():
            if path not in self._present():
                self._renamings.append((None, path, self._content(path)))
            self._by_number.pop(path.stat().st_ino, None)
            self._renamings.append((path, None, None))

    def _sync_names(self) -> None:
        self._names, self._renamings = self._present(), []


def _rename(names: dict[Path, Content], renaming: tuple[Path | None, Path | None, Content | None]) -> None:
    source, target, content = renaming
    if source is None and target is not None and content is not None:
        names[target] = content
    elif source is not None:
        moved = {path: names.pop(path) for path in list(names) if path == source or source in path.parents}
        if target is not None:
            for path, content in moved.items():
                names[target / path.relative_to(source)] = content


def _kind(path: Path) -> str:
    for ending in ("wal", "journal"):
        if path.name.endswith(f"-{ending}"):
            return ending
    return "database"


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.endswith("-shm"))


def _write_all(file: int, content: bytes) -> None:
    while content:
        content = content[os.write(file, content) :]


def _raise(number: int) -> None:
    if number:
        raise OSError(number, os.strerror(number))
