"""Packet I/O past the kernel: batches of UDP datagrams as NumPy arrays, from any Pollux port.

    with pollux.open("pcap:rx=run.pcapng", streams=[7502, 7503]) as port:
        for batch in port:
            batch.dst_port, batch.length      # arrays
            batch.field(8, "<u8")             # this field of every payload
            batch[0]                          # a payload, without a copy
    port.ledger()
"""

from ._events import L0_EVENT, Recording, read_events, read_recording, rings
from ._l0 import l0
from ._ledger import Ledger, Sent
from ._pollux import Batch, Port, PortError, SpecError, open
from ._ports import Device, Interface, Ports, Spec, ports

__all__ = ["Batch", "Device", "Interface", "L0_EVENT", "Ledger", "Port", "PortError", "Ports", "Recording", "Sent",
           "Spec", "SpecError", "l0", "open", "ports", "read_events", "read_recording", "rings"]
