"""Hosts that this process may reach: this machine, and those that the user named by a model, an alias or a proxy.

The guard is an audit hook of Python (PEP 578), so it stops every library that connects by Python's sockets, and none
that brings its own (Ray's gRPC, the downloads of hf_xet). It guards names and addresses of TCP, not single packets.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Setting

HUB = ("huggingface.co", "hf.co")
"""Where the Hugging Face hub and its files are, with the names below them."""

_OFFLINE = ContextVar("_OFFLINE", default=False)


class _Guard:
    """The permitted hosts, and the hook, which cannot be removed once it is there."""

    def __init__(self) -> None:
        self.permitted: set[str] = set()
        self.is_on = False

    def permits(self, host: str) -> bool:
        # A point at the end only says that the name is complete: `example.org.`
        name = host.rstrip(".").casefold()
        if is_local_host(name):
            return True
        return any(name == known or name.endswith(f".{known}") for known in self.permitted)

    def watch(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Raises PermissionError for a lookup of a host that is not permitted, and for a connection to one."""
        if event in ("socket.getaddrinfo", "socket.gethostbyname"):
            self._check(arguments[0])
        elif event == "socket.connect":
            # The address of a Unix socket is a path and not a tuple. Datagrams, such as a resolver's, are not guarded.
            opened, address = arguments
            # Which addresses a permitted name has, the resolver alone knows: any will do once a name is permitted.
            resolved = (
                isinstance(address, tuple) and _is_address(address[0]) and not all(map(_is_address, self.permitted))
            )
            if isinstance(address, tuple) and opened.type == socket.SOCK_STREAM and not resolved:
                self._check(address[0])

    def _check(self, host: str | bytes | None) -> None:
        named = host.decode("ascii", "replace") if isinstance(host, bytes) else host
        if named and not self.permits(named):
            raise PermissionError(f"{named} is not the host of any model, alias or proxy.")


def _is_address(host: str) -> bool:
    # `fe80::1%eth0` names the interface after the address.
    return _address(host.partition("%")[0]) is not None


def is_local_host(host: str) -> bool:
    """Tell if a name or address means the loopback interface, or this machine by its own name."""
    host = host.rstrip(".")
    names = ("localhost", socket.gethostname().casefold())
    if host.casefold() in names or host.casefold().endswith(".localhost"):
        return True
    address = _address(host)
    # `::ffff:127.0.0.1` is this machine, too.
    mapped = getattr(address, "ipv4_mapped", None) or address
    return mapped is not None and (mapped.is_loopback or mapped.is_unspecified)


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host))  # reads `127.1` and `0x7f000001`, as connecting does
    except (OSError, UnicodeError):
        return None


_GUARD = _Guard()


def guard() -> None:
    """From now on this process reaches the permitted hosts only. A second call changes nothing.

    Below Python 3.12 a process that coverage or a debugger traces stays unguarded: there, a thread would not run whose
    start meets that of another while a hook is at work ("Cannot install a trace function ...").
    """
    if not _GUARD.is_on and not (sys.version_info < (3, 12) and sys.gettrace()):
        _GUARD.is_on = True
        sys.addaudithook(_GUARD.watch)


def permit(*hosts: str) -> None:
    """Let this process reach these hosts and the names below them. Raises HapaxError if it is offline."""
    for host in hosts:
        if _OFFLINE.get() and not is_local_host(host):
            raise HapaxError(
                f"{host} is not on this machine, and {Setting('offline')} keeps all requests on it. Name a "
                f"model in this process or a server on localhost, or omit {Setting('offline')}."
            )
        _GUARD.permitted.add(host.rstrip(".").casefold())


def is_offline() -> bool:
    """True inside `offline(True)`."""
    return _OFFLINE.get()


@contextmanager
def offline(applies: bool) -> Iterator[None]:
    """Inside, if it applies, no other machine can be permitted, and checkpoints come from this one alone."""
    # A block inside another one cannot lift its ban.
    token = _OFFLINE.set(applies or _OFFLINE.get())
    try:
        yield
    finally:
        _OFFLINE.reset(token)
