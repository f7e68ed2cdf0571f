"""`async for` over a port."""

import asyncio

# Polls without a datagram after which the loop sleeps instead of yielding.
BUSY = 200
# Seconds of a sleep; a port's rings hold more than arrives meanwhile.
NAP = 0.0005


async def batches(port):
    """The batches of a port; other tasks run between two polls."""
    idle = 0
    while True:
        batch = port.poll()
        if batch is not None:
            idle = 0
            yield batch
            await asyncio.sleep(0)
        elif port.ended:
            return
        else:
            idle += 1
            await asyncio.sleep(0 if idle < BUSY else NAP)
