"""Landlock, Linux's restriction that a process puts on itself: here, no file and no network.

The numbers are those of the kernel's interface, linux/landlock.h, and are the same on every processor but alpha. There
is not a maintained package for Python that covers network and scopes.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_CREATE_RULESET, _RESTRICT_SELF = 444, 446
_VERSION_FLAG = 1
_NO_NEW_PRIVILEGES, _SIGNAL_AT_PARENTS_DEATH = 38, 1  # of prctl

_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
"""Number of rights over files (the lowest bits) from each version of the interface on."""

_NETWORK_VERSION, _NETWORK_RIGHTS = 4, 0b11  # bind and connect by TCP
_SCOPE_VERSION, _SCOPES = 6, 0b11  # abstract sockets and signals


class _DeniedRights(ctypes.Structure):
    """`struct landlock_ruleset_attr`: the rights that are taken away."""

    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


def interface_version() -> int:
    """Version of the kernel's interface; 0 without Landlock."""
    if not sys.platform.startswith("linux"):
        return 0
    # With this flag alone the call makes nothing and returns the version.
    version: int = ctypes.CDLL(None).syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG)
    return max(0, version)


def lead_group() -> None:
    """Make this process the first of a process group, which `kill_group` ends, and which ends with its parent.

    Does nothing but on Linux: elsewhere it could outlive the parent.
    """
    if sys.platform.startswith("linux"):
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(_SIGNAL_AT_PARENTS_DEATH, signal.SIGKILL, 0, 0, 0)


def kill_group(process: int) -> None:
    """Kill a child and its group, if it leads one; harmless if it has ended and was not waited for."""
    try:
        os.killpg(process, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(process, signal.SIGKILL)


def shut_off() -> bool:
    """Take from this thread, and from all that it starts, every access to files, TCP and processes outside it.

    Files that are open already stay usable. This cannot be undone. Returns False where the kernel cannot do it.
    """
    version = interface_version()
    if not version:
        return False
    rights = max(count for since, count in _FILE_RIGHTS.items() if since <= version)
    ruleset = _DeniedRights(
        (1 << rights) - 1,
        _NETWORK_RIGHTS if version >= _NETWORK_VERSION else 0,
        _SCOPES if version >= _SCOPE_VERSION else 0,
    )
    # Older kernels know a shorter structure and refuse fields that they do not know, unless these are zero.
    libc = ctypes.CDLL(None)
    created = libc.syscall(_CREATE_RULESET, ctypes.byref(ruleset), ctypes.sizeof(ruleset), 0)
    if created < 0:
        return False
    try:
        # The kernel demands this first: no program that is started may gain rights.
        libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        # No rule was added to the ruleset, so nothing is excepted.
        return bool(libc.syscall(_RESTRICT_SELF, created, 0) == 0)
    finally:
        os.close(created)
