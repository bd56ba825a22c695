"""What a server counts of itself, in the text that Prometheus reads."""

from __future__ import annotations

from collections import Counter
from dataclasses import field

from softcount.records import dataclass

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Seconds up to which requests are counted together."""

Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class ServerMetrics:
    """Requests by route, model and status, the seconds they took, the rows they held, and how many are under way."""

    requests: Counter[Labels] = field(default_factory=Counter)
    rows: Counter[Labels] = field(default_factory=Counter)
    times: dict[str, list[int]] = field(default_factory=dict)
    seconds: Counter[str] = field(default_factory=Counter)
    under_way: int = 0

    def add(self, route: str, model: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self.requests[("route", route), ("model", model), ("code", str(status))] += 1
        buckets = self.times.setdefault(route, [0] * (len(BUCKETS) + 1))
        for place, edge in enumerate((*BUCKETS, float("inf"))):
            buckets[place] += seconds <= edge
        self.seconds[route] += seconds  # type: ignore[assignment]  # a counter of seconds

    def add_rows(self, model: str, rows: int) -> None:
        """Count the rows of a request."""
        self.rows[(("model", model),)] += rows

    def text(self) -> str:
        """All of it, as Prometheus reads it."""
        lines = ["# TYPE softcount_requests_total counter"]
        lines += [f"softcount_requests_total{_labels(key)} {n}" for key, n in sorted(self.requests.items())]
        lines += ["# TYPE softcount_rows_total counter"]
        lines += [f"softcount_rows_total{_labels(key)} {n}" for key, n in sorted(self.rows.items())]
        lines += ["# TYPE softcount_requests_under_way gauge", f"softcount_requests_under_way {self.under_way}"]
        lines += ["# TYPE softcount_request_seconds histogram"]
        for route, buckets in sorted(self.times.items()):
            for edge, n in zip((*map(str, BUCKETS), "+Inf"), buckets, strict=True):
                lines.append(f"softcount_request_seconds_bucket{_labels((('route', route), ('le', edge)))} {n}")
            lines.append(f"softcount_request_seconds_sum{_labels((('route', route),))} {self.seconds[route]!r}")
            lines.append(f"softcount_request_seconds_count{_labels((('route', route),))} {buckets[-1]}")
        return "\n".join(lines) + "\n"


def _labels(pairs: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
