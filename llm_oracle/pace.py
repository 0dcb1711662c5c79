"""The pace of a server: the wall time of many requests from its limits and its latency."""

from __future__ import annotations

from dataclasses import dataclass

from hapax.llm_oracle.protocols import Usage


@dataclass(frozen=True, slots=True)
class ServerPace:
    """Limits and speed of a server. None: no limit, or unknown.

    `latency`: seconds of a request apart from its answer's tokens; `speed`: tokens per second of one answer.
    """

    max_concurrency: int
    rpm: float | None = None
    tpm: float | None = None
    latency: float | None = None
    speed: float | None = None

    def seconds(self, requests: int, usage: Usage, rounds: int) -> float | None:
        """Wall time of requests that use `usage` and are sent in `rounds`, one after the other; None if unknown.

        A round takes at least the time of one request; its last requests leave some places empty, half of them in
        the mean.
        """
        if not requests:
            return 0.0
        # Each limit alone gives a least time; the longest of them holds.
        limits = [60 * requests / self.rpm] if self.rpm else []
        if self.tpm:
            limits.append(60 * requests * usage.tokens / self.tpm)
        if self.latency is None:
            return max(limits, default=None)
        duration = self.latency + (usage.completion_tokens / self.speed if self.speed else 0.0)
        rounds = min(rounds, requests)
        places = self.max_concurrency
        # No more than each request in turn, no less than all rounds.
        waves = max(rounds, min(requests, requests / places + rounds * (places - 1) / (2 * places)))
        return max(*limits, waves * duration) if limits else waves * duration
