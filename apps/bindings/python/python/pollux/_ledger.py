"""The types of `Port.ledger`."""

from typing import TypedDict


class Sent(TypedDict):
    """What a port has sent."""

    packets: int
    bytes: int
    errors: int


class Ledger(TypedDict):
    """Every frame from the wire is delivered, or dropped for a cause."""

    from_wire: int
    delivered: int
    dropped: dict[str, int]
    balanced: bool
    sent: Sent
