"""Proxies to servers of models: none unless `--proxy` or an alias names one, and never one to this machine.

The environment's HTTP_PROXY, HTTPS_PROXY and ALL_PROXY are ignored, because a proxy sees everything that is sent to an
http:// server, its key included.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import SplitResult, urlsplit

from hapax.grammar.errors import HapaxError


def named_proxy(name: str, environment: Mapping[str, str], where: str) -> str:
    """The URL of a proxy: `name` itself, or the value of the environment variable that it names.

    A URL with a password is accepted from the environment alone. Raises HapaxError for anything else.
    """
    if "://" in name:
        parts = urlsplit(name)
        if "@" in parts.netloc:
            raise HapaxError(
                f"{where}: the proxy contains a user name or password. Put its URL into an environment variable, and "
                "give the name of the variable instead."
            )
        return _checked(name, where)
    url = environment.get(name, "").strip()
    if not url:
        raise HapaxError(
            f"{where}: the proxy {name!r} is neither a URL nor an environment variable that is set. Write it like "
            "http://proxy:3128."
        )
    return _checked(url, f"{where}: {name}")


def _checked(url: str, where: str) -> str:
    # The URL is not shown: it may contain a password.
    if http_parts(url) is None:
        raise HapaxError(f"{where}: the URL of the proxy is not valid. Write it like http://proxy:3128.")
    return url


def http_parts(url: str) -> SplitResult | None:
    """The parts of an http URL with a host; None for anything else."""
    try:
        parts = urlsplit(url)
        # Reading `port` raises ValueError if it is not a number.
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        return None
    return parts if usable and not any(c.isspace() or not c.isprintable() for c in url) else None


def is_this_machine(base_url: str) -> bool:
    """Tell if a server's address is on the loopback interface, where a proxy would be another machine's."""
    return is_local_host(urlsplit(base_url).hostname or "")


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
