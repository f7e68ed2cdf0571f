"""A program as users write it, for the type checker alone."""

import numpy as np
import numpy.typing as npt

import pollux


def histogram(spec: str, bins: int) -> tuple[npt.NDArray[np.int64], pollux.Ledger]:
    """Counts the datagrams of a stream by the lowest byte of their first field."""
    counts = np.zeros(bins, np.int64)
    with pollux.open(spec, streams=[7502], burst=64) as port:
        for batch in port:
            kept: npt.NDArray[np.uint8] = batch[0]
            counts += np.bincount(batch.field(0, "<u8") % bins, minlength=bins)
            assert kept.size == batch.length[0] and batch.wire_ns[0] >= 0
        port.send([b"0" * 14, kept])
    return counts, port.ledger()


async def first(port: pollux.Port) -> pollux.Batch | None:
    """The first batch."""
    async for batch in port:
        return batch
    return None
