"""A simulated disk: which content and names a power cut keeps, and what fails or ends a process at which operation.

Files lie in a real folder, preferably of a memory file system. Beside it the disk keeps what was forced to it: the
content of each file, and the names of all. A power cut leaves of each file a random mix of its forced and its present
content, in sectors of 512 bytes, and names as they were at one moment since they were last forced.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tools.simulate import vfs
from tools.simulate.scheduling import Killed, Scheduler, SimulatedProcess

SECTOR = 512

BEFORE, AMID, AFTER, CUT = DEATHS = ("kill before", "kill amid", "kill after", "power cut")
RENAMING = ("delete", "rename", "remove", "remove folder")
ERRORS = {"EIO": errno.EIO, "ENOSPC": errno.ENOSPC, "EDQUOT": errno.EDQUOT}


@dataclass(frozen=True, slots=True)
class DiskFault:
    """A death or an error at the crossing of this kind with this number, and, if an error, at those that follow."""

    kind: str
    number: int
    name: str
    lasting: int = 1


@dataclass(eq=False)
class Content:
    """The bytes of a file that are on the disk, None if none ever were.

    `names_folder`: the next sync of the file forces the names of its folder, too.
    """

    durable: bytes | None = None
    names_folder: bool = False

    def mixed(self, found: bytes, stream: random.Random) -> bytes:
        """Content that a power cut leaves of a file that was not forced to the disk since it changed."""
        if self.durable == found:
            return found
        old, kept = self.durable or b"", stream.choice((0.0, 0.2, 0.5, 0.8, 1.0))
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


Names = dict[Path, Content]


class Disk:
    """The disk under a folder, as SQLite's layer and `hapax.kb.files.system` use it.

    `faults` come in the order of their crossings; `crossings` counts these by kind since `restart`.
    """

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.random = random.Random(f"disk {seed}")  # noqa: S311  no secret
        self.injected: Counter[str] = Counter()
        self.scheduler: Scheduler | None = None

    def restart(self, scheduler: Scheduler, faults: list[DiskFault]) -> None:
        """Begin another run: whatever is in the folder is on the disk."""
        self.scheduler, self.faults = scheduler, {(fault.kind, fault.number): fault for fault in faults}
        self.crossings: Counter[str] = Counter()
        self.is_cut = False
        self._error = (0, 0)
        self._by_number = {path.stat().st_ino: Content(path.read_bytes()) for path in _files(self.root)}
        self._names: list[Names] = [{}]
        """The names at each moment since they were last forced, the newest last."""
        self._note()
        self._force_names()

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
        self.crossings[kind] += 1
        fault = self.faults.get((kind, self.crossings[kind]))
        if number := self._error_of(kind, fault):
            return number
        if kind in RENAMING:
            self._note()  # names that are new until now
        if fault is None or fault.name in ERRORS:
            perform()
            if kind in RENAMING:
                self._note()
            return 0
        self.injected[f"{fault.name}, {kind}"] += 1
        if fault.name == AMID:
            (amid or perform)()
        elif fault.name == AFTER or (fault.name == CUT and self.random.random() < 0.5):
            perform()
        if fault.name == CUT:
            self.is_cut = True
            scheduler.kill_all()
        scheduler.kill(scheduler.me.process)
        raise Killed

    def _error_of(self, kind: str, fault: DiskFault | None) -> int:
        """The number of the error of this crossing; 0 for none."""
        if fault is not None and fault.name in ERRORS:
            self._error = (ERRORS[fault.name], fault.lasting)
            self.injected[fault.name] += 1
        number, left = self._error
        self._error = (number, max(0, left - 1))
        # A full disk takes no writes, and forgets none.
        is_refused = kind.startswith("write") or (number == errno.EIO and kind.startswith("sync"))
        return number if left and is_refused else 0

    def sqlite(
        self,
        kind: str,
        file: OpenFile | None,
        perform: Callable[[], int],
        code: int,
        part: Callable[[], int] | None = None,
    ) -> int:
        """As `cross`, for SQLite: returns its code, for errors of this kind `code`."""
        if file is not None and file.process is not None and file.process.is_dead:
            return code
        done: list[int] = []
        try:
            number = self.cross(kind, lambda: done.append(perform()), part)
        except Killed:
            return code
        if number == errno.ENOSPC:
            return vfs.FULL
        return code if number else done[0]

    # -- SQLite's files

    def opened(self, path: Path, is_new: bool) -> OpenFile:
        """A file of which SQLite will call this disk; `is_new`: it has just made it."""
        self._note()
        content = self._by_number[path.stat().st_ino]
        # SQLite forces the name of a new log or journal to the disk along with its content.
        content.names_folder |= is_new and path.name.endswith(("-wal", "-journal"))
        thread = self.scheduler.me if self.scheduler else None
        return OpenFile(path, content, thread.process if thread else None)

    def write(self, file: OpenFile, size: int, perform: Callable[..., int]) -> int:
        part = partial(perform, self._some(size))
        return self.sqlite(f"write {_kind(file.path)}", file, perform, vfs.IOERR_WRITE, part)

    def sync(self, file: OpenFile) -> int:
        def force() -> int:
            file.content.durable = file.path.read_bytes()
            if file.content.names_folder:
                file.content.names_folder = False
                self._force_names()
            return vfs.OK

        code = self.sqlite(f"sync {_kind(file.path)}", file, force, vfs.IOERR_FSYNC)
        if code != vfs.OK and not (file.process and file.process.is_dead):
            # After a failed sync the system forgets which writes are not on the disk.
            file.content.durable = file.content.mixed(file.path.read_bytes(), self.random)
        return code

    def sleep(self, microseconds: int) -> None:
        if self.scheduler is not None and self.scheduler.me is not None:
            try:
                self.scheduler.wait(microseconds / 1e6, lambda: False)
            except Killed:
                return  # the next operation fails

    # -- other files, in the place of the functions of `hapax.kb.files.system`

    def write_file(self, file: int, content: bytes) -> None:
        part = partial(os.write, file, content[: self._some(len(content))])
        self._cross("write file", partial(_write_all, file, content), part)

    def sync_file(self, file: int) -> None:
        def force() -> None:
            self._note()
            status = os.fstat(file)
            self._by_number.setdefault(status.st_ino, Content()).durable = os.pread(file, status.st_size, 0)

        self._cross("sync file", force)

    def sync_folder(self, folder: Path) -> None:
        def force() -> None:
            if folder.is_relative_to(self.root):  # the user's journal is on another disk
                self._note()
                self._force_names()

        self._cross("sync folder", force)

    def rename(self, source: Path, target: Path, folders: tuple[int, int] | None = None) -> None:  # noqa: ARG002
        self._cross("rename", partial(source.replace, target))

    def remove(self, path: Path) -> None:
        self._cross("remove", partial(path.unlink, missing_ok=True))

    def remove_folder(self, folder: Path, parent: int) -> None:  # noqa: ARG002  as in `system`
        def part() -> None:
            for path in list(_files(folder))[::2]:
                path.unlink()

        self._cross("remove folder", partial(shutil.rmtree, folder, ignore_errors=True), part)

    def _cross(self, kind: str, perform: Callable[[], object], amid: Callable[[], object] | None = None) -> None:
        if number := self.cross(kind, perform, amid):
            raise OSError(number, os.strerror(number))

    # -- power cuts

    def cut(self) -> None:
        """Make the folder again as a power cut leaves it."""
        self._note()
        present = self._names[-1]
        names = dict(
            self._names[self.random.choice((0, len(self._names) - 1, self.random.randrange(len(self._names))))]
        )
        for path, content in present.items():
            if path not in names and content not in names.values() and self.random.random() < 0.5:
                names[path] = content
        found = {content: path.read_bytes() for path, content in present.items()}
        remains: dict[Path, bytes] = {}
        for path, content in names.items():
            if content in found:
                remains[path] = content.mixed(found[content], self.random)
            elif content.durable is not None:  # another file took its name, or none has it
                remains[path] = content.durable
        shutil.rmtree(self.root)
        self.root.mkdir()
        for path, remaining in remains.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(remaining)

    def _some(self, size: int) -> int:
        """A part of so many bytes, at least one."""
        return self.random.randrange(1, max(2, size))

    def _note(self) -> None:
        """Remember the names that the processes see, if they have changed."""
        numbers = {path: path.stat().st_ino for path in _files(self.root)}
        self._by_number = {number: self._by_number.get(number) or Content() for number in numbers.values()}
        names = {path: self._by_number[number] for path, number in numbers.items()}
        if names != self._names[-1]:
            self._names.append(names)

    def _force_names(self) -> None:
        self._names = self._names[-1:]


def _kind(path: Path) -> str:
    return next((ending for ending in ("wal", "journal") if path.name.endswith(f"-{ending}")), "database")


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.endswith("-shm"))


def _write_all(file: int, content: bytes) -> None:
    while content:
        content = content[os.write(file, content) :]
