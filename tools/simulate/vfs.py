"""A layer below SQLite (a VFS) that sees each write, truncation, sync and removal of its files.

It is SQLite's own layer for Unix with four functions of files and three of the system in front, made by `ctypes` in the
library that Python's `sqlite3` has loaded. The disk of the simulation decides what happens at each operation.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import ctypes.util
import sqlite3
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tools.simulate.disk import Disk

OK, IOERR, FULL = 0, 10, 13
IOERR_WRITE, IOERR_FSYNC, IOERR_DELETE = IOERR | 3 << 8, IOERR | 4 << 8, IOERR | 10 << 8
MAIN, WAL, JOURNAL = 0x100, 0x80000, 0x800
CREATED = 0x4
KEPT_FILES = MAIN | WAL | JOURNAL


class Methods(Structure):
    """sqlite3_io_methods."""


class File(Structure):
    """sqlite3_file: what SQLite's own layer keeps after it is its affair."""

    _fields_ = (("methods", POINTER(Methods)),)


_CLOSE = CFUNCTYPE(c_int, POINTER(File))
_WRITE = CFUNCTYPE(c_int, POINTER(File), c_void_p, c_int, c_int64)
_TRUNCATE = CFUNCTYPE(c_int, POINTER(File), c_int64)
_SYNC = CFUNCTYPE(c_int, POINTER(File), c_int)
_OPEN = CFUNCTYPE(c_int, c_void_p, c_void_p, POINTER(File), c_int, POINTER(c_int))
_DELETE = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)
_SLEEP = CFUNCTYPE(c_int, c_void_p, c_int)

Methods._fields_ = (
    ("version", c_int),
    ("close", _CLOSE),
    ("read", c_void_p),
    ("write", _WRITE),
    ("truncate", _TRUNCATE),
    ("sync", _SYNC),
    # The rest, up to version 3, stays as it is.
    *((f"rest_{number}", c_void_p) for number in range(13)),
)


class System(Structure):
    """sqlite3_vfs."""

    _fields_ = (
        ("version", c_int),
        ("file_size", c_int),
        ("longest_path", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        ("open", _OPEN),
        ("delete", _DELETE),
        ("access", c_void_p),
        ("full_path", c_void_p),
        *((f"library_{number}", c_void_p) for number in range(4)),
        ("randomness", c_void_p),
        ("sleep", _SLEEP),
        *((f"rest_{number}", c_void_p) for number in range(6)),
    )


class Layer:
    """The layer, which is registered once; `watcher` may change, None: operations pass."""

    def __init__(self) -> None:
        library = ctypes.CDLL(ctypes.util.find_library("sqlite3") or "libsqlite3.so.0")
        library.sqlite3_vfs_find.restype = POINTER(System)
        library.sqlite3_libversion.restype = c_char_p
        # Python's module must have the library as a file of its own, so that both are the same one.
        is_shared = hasattr(_sqlite3, "__file__") and "libsqlite3" in Path("/proc/self/maps").read_text("utf-8")
        if library.sqlite3_libversion().decode() != sqlite3.sqlite_version or not is_shared:
            raise OSError("Python's sqlite3 does not use the SQLite library of the system, so it cannot be simulated")
        self.watcher: Disk | None = None
        self._real = library.sqlite3_vfs_find(None).contents
        self._methods: dict[int, Methods] = {}
        self._files: dict[int, tuple[Any, Any]] = {}
        self._layer = System.from_buffer_copy(self._real)
        self._layer.name = b"simulated"
        self._layer.next = None
        self._layer.open, self._layer.delete = _OPEN(self._open), _DELETE(self._delete)
        self._layer.sleep = _SLEEP(self._sleep)
        self._close_function, self._write_function = _CLOSE(self._close), _WRITE(self._write)
        self._truncate_function, self._sync_function = _TRUNCATE(self._truncate), _SYNC(self._sync)
        if library.sqlite3_vfs_register(ctypes.byref(self._layer), 1) != OK:
            raise OSError("SQLite does not accept another layer")

    def _open(self, _: Any, name: Any, file: Any, flags: int, flags_used: Any) -> int:
        path = Path(ctypes.string_at(name).decode()) if name else None
        is_watched = self.watcher is not None and path is not None and bool(flags & KEPT_FILES)
        is_new = is_watched and bool(flags & CREATED) and path is not None and not path.exists()
        code = self._real.open(ctypes.addressof(self._real), name, file, flags, flags_used)
        if code != OK or not is_watched or self.watcher is None or path is None:
            return int(code)
        place = ctypes.addressof(file.contents.methods.contents)
        real = Methods.from_address(place)
        if place not in self._methods:
            methods = Methods.from_buffer_copy(real)
            methods.close, methods.write = self._close_function, self._write_function
            methods.truncate, methods.sync = self._truncate_function, self._sync_function
            self._methods[place] = methods
        file.contents.methods = ctypes.pointer(self._methods[place])
        self._files[_place(file)] = (real, self.watcher.opened(path, is_new and path.exists()))
        return OK

    def _close(self, file: Any) -> int:
        real, _ = self._files.pop(_place(file))
        return int(real.close(file))

    def _write(self, file: Any, content: int, size: int, offset: int) -> int:
        real, watched = self._files[_place(file)]

        def perform(part: int = size) -> int:
            return int(real.write(file, content, part, offset))

        return IOERR_WRITE if self.watcher is None else self.watcher.write(watched, size, perform)

    def _truncate(self, file: Any, size: int) -> int:
        real, watched = self._files[_place(file)]
        if self.watcher is None:
            return IOERR_WRITE
        return self.watcher.sqlite("truncate", watched, lambda: int(real.truncate(file, size)), IOERR_WRITE)

    def _sync(self, file: Any, _: int) -> int:
        # The real sync would cost time and prove nothing: what a power cut keeps is simulated.
        return IOERR_FSYNC if self.watcher is None else self.watcher.sync(self._files[_place(file)][1])

    def _delete(self, _: Any, name: bytes, __: int) -> int:
        def perform() -> int:
            return int(self._real.delete(ctypes.addressof(self._real), name, 0))

        return perform() if self.watcher is None else self.watcher.sqlite("delete", None, perform, IOERR_DELETE)

    def _sleep(self, _: Any, microseconds: int) -> int:
        if self.watcher is None:
            return int(self._real.sleep(ctypes.addressof(self._real), microseconds))
        self.watcher.sleep(microseconds)
        return microseconds


def _place(file: Any) -> int:
    return ctypes.addressof(file.contents)
