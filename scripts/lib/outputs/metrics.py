"""Counters of a run with an output, read from its metrics."""

import re
import urllib.request
from http.client import HTTPException

DELIVERED = re.compile(r'^pollux_l0_output_events_total\{.*outcome="delivered".*\} (\d+)', re.MULTILINE)
BUILT = re.compile(r'^pollux_l0_events_total\{outcome="(?:complete|incomplete)"\} (\d+)', re.MULTILINE)


def total(address, metric):
    """The sum of a metric, 0 before the run and after it."""
    try:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as page:
            return sum(map(int, metric.findall(page.read().decode())))
    except (OSError, HTTPException):
        return 0
