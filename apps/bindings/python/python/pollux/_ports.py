"""The ports that can be opened on this machine."""

import json
from typing import Literal, NotRequired, TypedDict

from ._pollux import ports_json  # type: ignore[import-not-found]  # compiled, without annotations


class Spec(TypedDict):
    """A port spec."""

    spec: str
    driver: str
    state: Literal["usable", "unusable", "form"]
    why: str


class Interface(TypedDict):
    """A network interface."""

    name: str
    up: bool
    carrier: bool
    mac: NotRequired[str]
    mtu: NotRequired[int]
    speed_mbit: NotRequired[int]
    driver: NotRequired[str]


class Device(TypedDict):
    """A network controller on the PCI bus."""

    address: str
    ids: str
    name: str
    driver: NotRequired[str]
    node: NotRequired[int]
    iommu_group: NotRequired[int]
    speed_gts: NotRequired[float]
    width: NotRequired[int]
    interfaces: list[str]
    why: str


class Ports(TypedDict):
    """The answer of `ports`; what is not known is not there."""

    schema: int
    ports: list[Spec]
    interfaces: list[Interface]
    pci: list[Device]


def ports() -> Ports:
    """The ports that can be opened on this machine, as `pollux ports --json` prints them: specs with their state, or
    the form of those that need more, network interfaces, and network controllers on the PCI bus. Opens nothing."""
    found: Ports = json.loads(ports_json())
    return found
