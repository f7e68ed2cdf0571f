"""The L0 trigger as a source of events."""

import warnings

from ._events import L0_EVENT
from ._pollux import L0Run  # type: ignore[import-not-found]  # compiled, without annotations


def l0(spec, config=None):
    """Runs the L0 trigger on a port and yields its decisions, in order: arrays of L0_EVENT, together the records of
    `l0-trigger --run N --events-out`. `config` is the path of a configuration file (docs/configuration.md). The run ends
    with the recording, or when the generator is closed."""
    return _blocks(L0Run(spec, config))


def _blocks(run):
    try:
        for block in run:
            yield block.view(L0_EVENT)
    finally:
        missed = run.close()
        if missed:
            warnings.warn(f"{missed} decisions were missed: take events faster", RuntimeWarning, stacklevel=2)
