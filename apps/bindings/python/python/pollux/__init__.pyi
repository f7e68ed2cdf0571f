import os
from collections.abc import AsyncIterator, Generator, Iterable, Iterator
from typing import Any, NamedTuple, final, overload

import numpy as np
import numpy.typing as npt

from ._ledger import Ledger, Sent
from ._ports import Device, Interface, Ports, Spec, ports

__all__ = ["Batch", "Device", "Interface", "L0_EVENT", "Ledger", "Port", "PortError", "Ports", "Recording", "Sent",
           "Spec", "SpecError", "l0", "open", "ports", "read_events", "read_recording", "rings"]

class SpecError(ValueError):
    """A port spec or an option is wrong, and nothing was opened. The message has the remedy."""

class PortError(OSError):
    """A port cannot be opened, used or closed. The message has the remedy."""

@final
class Batch:
    """The datagrams of one poll, at least one. It keeps their buffers until it is deleted; each use of a
    column makes a new array. After the port was closed only views that were taken before are valid."""

    @property
    def src_port(self) -> npt.NDArray[np.uint16]:
        """UDP source ports."""
    @property
    def dst_port(self) -> npt.NDArray[np.uint16]:
        """UDP destination ports."""
    @property
    def length(self) -> npt.NDArray[np.uint32]:
        """Bytes of the payloads."""
    @property
    def wire_ns(self) -> npt.NDArray[np.int64]:
        """Time stamps of the capture, the kernel or the NIC, in ns since 1970; 0 without one."""
    @property
    def arrival_ns(self) -> npt.NDArray[np.int64]:
        """Times of arrival in the process, in ns since the port was opened."""
    def field(self, offset: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """The value of type `dtype` at `offset` of every payload, as one array.

        Raises IndexError, with the number of the datagram, where a payload is too short, and TypeError for a
        `dtype` without a fixed size in bytes, or None."""
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> npt.NDArray[np.uint8]:
        """The payload of a datagram: a read-only view of its packet buffer, which stays valid after the
        port was closed, and keeps the buffer from the pool until it is deleted."""

@final
class Port:
    """An open port: an iterator over batches, for the thread that polls it first."""

    @property
    def spec(self) -> str:
        """The spec that the port was opened by."""
    @property
    def ended(self) -> bool:
        """Whether no batch can arrive any more: the recording is over, or the port was stopped or closed."""
    @property
    def free_buffers(self) -> int:
        """Free buffers of the pool: those in no batch, view or receive ring."""
    def __enter__(self) -> Port: ...
    def __exit__(self, *_exception: object) -> None: ...
    def __iter__(self) -> Iterator[Batch]: ...
    def __next__(self) -> Batch: ...
    def __aiter__(self) -> AsyncIterator[Batch]: ...
    def poll(self) -> Batch | None:
        """Polls once: a batch, or None if no datagram has arrived or the port was stopped. Never waits."""
    @overload
    def send(self, frames: npt.NDArray[np.uint8]) -> int: ...
    @overload
    def send(self, frames: Iterable[bytes | bytearray | npt.NDArray[np.uint8]]) -> int:
        """Copies Ethernet frames (a list, or the rows of an array) into buffers and sends them; returns how
        many left: the first so many. Never waits. ValueError, and nothing sent, if a frame is too short or
        too long."""
    def stop(self) -> None:
        """Makes iterations over the port end; from any thread or signal handler."""
    def close(self) -> None:
        """Stops and releases the port. PortError if its device could not be stopped in order, or its
        recording could not be read to the end."""
    def ledger(self) -> Ledger:
        """The ledger, from any thread, also after `close`."""
    def now_ns(self) -> int:
        """Nanoseconds since the port was opened, on the clock of `arrival_ns`."""

def open(
    spec: str,
    *,
    streams: Iterable[int] | None = None,
    burst: int = 256,
    data_room: int | None = None,
    buffers: int | None = None,
    reassemble: bool = True,
) -> Port:
    """Opens a port by its spec, such as "af_packet:eth1" or "pcap:rx=run.pcapng".

    streams: UDP destination ports to deliver; datagrams to others are dropped as demux-miss. Without it all
        datagrams are delivered.
    burst: most datagrams of a batch, 1 to 4096.
    data_room: bytes of a buffer; a longer frame or datagram is dropped as oversize. Without it a buffer holds
        the longest frame of the link, and any datagram of a recording.
    buffers: buffers of the pool, at least twice `burst`; without it 64 MiB of them, 1024 to 8192, or two batches and
        the receive rings if they are more.
    reassemble: join IPv4 fragments to datagrams, as a socket does; else they are dropped as ip-fragment.

    Raises SpecError where the spec or an option is wrong, PortError where the port cannot be opened."""

def l0(
    spec: str, config: str | os.PathLike[str] | None = None
) -> Generator[npt.NDArray[np.void], None, None]:
    """Runs the L0 trigger on a port and yields its decisions, in order: arrays of L0_EVENT, together the records of
    `l0-trigger --run N --events-out`. `config` is the path of a configuration file (docs/configuration.md). The run ends
    with the recording, or when the generator is closed."""

L0_EVENT: np.dtype[np.void]
"""An event of the L0 trigger, 64 B (docs/formats/event-record.md)."""

class Recording(NamedTuple):
    """A recording of `l0-trigger --record` (docs/formats/recording.md): arrays with a field for each column."""

    events: npt.NDArray[np.void]
    hits: npt.NDArray[np.void]
    rings: npt.NDArray[np.void]
    configuration: str
    complete: bool

def read_events(path: str | os.PathLike[str]) -> npt.NDArray[np.void]:
    """Maps an event file of `l0-trigger --events-out`: an array of L0_EVENT, which is read when it is used."""

def rings(events: npt.ArrayLike) -> npt.NDArray[np.void]:
    """The rings of events, one item each: its event (the index in `events`), disk, centre and radius in mm, and hits
    (127 for more)."""

def read_recording(path: str | os.PathLike[str]) -> Recording:
    """Reads a recording in HDF5. Needs h5py: pip install "pollux[hdf5]"."""
