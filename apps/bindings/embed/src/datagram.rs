//! Received UDP datagrams, each in one buffer.

use pollux_mempool::time::{Tsc, WireTime};
use pollux_mempool::{Frozen, Mbuf};

/// Bytes of a UDP header (RFC 768): source port, destination port, length, checksum.
const UDP_HEADER: usize = 8;

/// Place of a datagram's payload in its frame, which is one segment.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: u16,
    len: u16,
}

impl Place {
    #[inline]
    fn payload(self, frame: &[u8]) -> &[u8] {
        let offset = usize::from(self.offset);
        let payload = frame.get(offset..offset + usize::from(self.len));
        payload.unwrap_or_default()
    }

    /// A port in the UDP header, which is in front of the payload.
    #[inline]
    fn port(self, frame: &[u8], field: usize) -> u16 {
        let start = usize::from(self.offset).wrapping_sub(UDP_HEADER);
        let bytes = frame
            .get(start.wrapping_add(field)..)
            .and_then(<[u8]>::first_chunk);
        bytes.copied().map_or(0, u16::from_be_bytes)
    }
}

/// A received datagram. Its frame is in one buffer, which dropping it returns to the pool;
/// [`EmbeddedPort::free`](crate::EmbeddedPort::free) does so faster.
#[derive(Debug)]
pub struct Datagram {
    mbuf: Mbuf,
    place: Place,
}

impl Datagram {
    /// `mbuf` has one segment, with `len` bytes of payload from `offset` on.
    #[inline]
    pub(crate) fn new(mbuf: Mbuf, offset: u16, len: u16) -> Self {
        let place = Place { offset, len };
        Self { mbuf, place }
    }

    /// The frame, from its Ethernet header on.
    #[must_use]
    #[inline]
    pub fn frame(&self) -> &[u8] {
        self.mbuf.data()
    }

    /// The UDP payload.
    #[must_use]
    #[inline]
    pub fn payload(&self) -> &[u8] {
        self.place.payload(self.frame())
    }

    /// Bytes from the start of the frame to the payload.
    #[must_use]
    #[inline]
    pub fn payload_offset(&self) -> usize {
        usize::from(self.place.offset)
    }

    /// UDP source port.
    #[must_use]
    #[inline]
    pub fn src_port(&self) -> u16 {
        self.place.port(self.frame(), 0)
    }

    /// UDP destination port.
    #[must_use]
    #[inline]
    pub fn dst_port(&self) -> u16 {
        self.place.port(self.frame(), 2)
    }

    /// Time stamp of the capture, the kernel or the device, if there is one.
    #[must_use]
    #[inline]
    pub fn wire_time(&self) -> Option<WireTime> {
        self.mbuf.wire_time()
    }

    /// When the frame reached the process; [`PortClock::ns`](crate::PortClock::ns) converts it.
    #[must_use]
    #[inline]
    pub fn arrival(&self) -> Tsc {
        self.mbuf.arrival()
    }

    /// The frame's buffer: to be changed, sent or freed.
    #[must_use]
    #[inline]
    pub fn into_mbuf(self) -> Mbuf {
        self.mbuf
    }

    /// Makes the datagram read-only and shareable, without a copy.
    #[must_use]
    #[inline]
    pub fn share(self) -> SharedDatagram {
        SharedDatagram {
            frame: self.mbuf.freeze(),
            place: self.place,
        }
    }
}

/// A read-only datagram with any number of owners, on any thread. The last of them returns the buffer
/// to its pool, which lives as long: it may outlive its port.
#[derive(Clone, Debug)]
pub struct SharedDatagram {
    frame: Frozen,
    place: Place,
}

impl SharedDatagram {
    /// The frame, from its Ethernet header on.
    #[must_use]
    #[inline]
    pub fn frame(&self) -> &[u8] {
        self.frame.data()
    }

    /// The UDP payload.
    #[must_use]
    #[inline]
    pub fn payload(&self) -> &[u8] {
        self.place.payload(self.frame.data())
    }

    /// Bytes of the payload.
    #[must_use]
    #[inline]
    pub fn payload_len(&self) -> u16 {
        self.place.len
    }

    /// UDP source port.
    #[must_use]
    #[inline]
    pub fn src_port(&self) -> u16 {
        self.place.port(self.frame.data(), 0)
    }

    /// UDP destination port.
    #[must_use]
    #[inline]
    pub fn dst_port(&self) -> u16 {
        self.place.port(self.frame.data(), 2)
    }

    /// Time stamp of the capture, the kernel or the device, if there is one.
    #[must_use]
    #[inline]
    pub fn wire_time(&self) -> Option<WireTime> {
        self.frame.wire_time()
    }

    /// When the frame reached the process; [`PortClock::ns`](crate::PortClock::ns) converts it.
    #[must_use]
    #[inline]
    pub fn arrival(&self) -> Tsc {
        self.frame.arrival()
    }

    /// The buffer, if there is no other owner; it is then freed or changed as any other.
    ///
    /// # Errors
    /// Gives the datagram back if it has other owners.
    #[inline]
    pub fn try_into_mbuf(self) -> Result<Mbuf, SharedDatagram> {
        let place = self.place;
        let thawed = self.frame.try_thaw();
        thawed.map_err(|frame| Self { frame, place })
    }
}
