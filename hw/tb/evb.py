"""Messages of the flow control ring, as flat vectors (FLOW and FEEDBACK in hw/docs/layouts.md)."""

RUN = 7

FLOW = (("run", 0, 32), ("number", 32, 32), ("decided", 64, 32), ("generation", 96, 32), ("descriptor", 128, 16),
        ("attempt", 144, 16), ("loops", 160, 8), ("hold", 168, 1), ("event", 169, 1), ("members", 170, 32),
        ("pending", 202, 32))
FEEDBACK = (("run", 0, 32), ("number", 32, 32), ("generation", 64, 32), ("descriptor", 96, 16), ("column", 112, 8))


def pack(layout, **values):
    """A vector of these fields; the others are 0."""
    word = 0
    for name, at, width in layout:
        word |= (values.pop(name, 0) & ((1 << width) - 1)) << at
    assert not values, values
    return word


def unpack(layout, word):
    return {name: word >> at & ((1 << width) - 1) for name, at, width in layout}


def flow(**values):
    """A message of an event, to two feeders unless others are given."""
    return {**dict(run=RUN, number=0, decided=0, generation=1, descriptor=0, attempt=1, loops=0, hold=1, event=1,
                   members=3, pending=3), **values}
