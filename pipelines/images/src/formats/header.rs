//! Header of a packet: parser and writer.

use zerocopy::byteorder::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::layout::{Detector, HEADER_LEN, Layout};

/// Header of a packet. Versions 1 and 2 have the same fields at the same places; version 1 has other
/// names for some of them.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Header {
    /// Number of the frame.
    pub frame_number: U64,
    /// Exposure time in units of 100 ns; EIGER: number of the subframe.
    pub exposure: U32,
    /// Number of the packet among those of its frame from the same UDP interface.
    pub packet_number: U32,
    /// JUNGFRAU: bunch identifier; other detectors: their own use.
    pub bunch_id: U64,
    /// Start of the exposure since the start of the measurement, in units of 100 ns.
    pub timestamp: U64,
    /// Identifier of the module, or of its port for detectors whose ports have an identifier each.
    pub module_id: U16,
    /// Row of the port in the detector (version 1: x coordinate).
    pub row: U16,
    /// Column of the port in the detector (version 1: y coordinate).
    pub column: U16,
    /// The detector's own use (version 1: z coordinate).
    pub spec2: U16,
    /// The detector's own use (version 1: debug).
    pub spec3: U32,
    /// The detector's own use (version 1: number in a round robin of receivers).
    pub spec4: U16,
    /// Type of the detector: [`Detector::code`].
    pub detector: u8,
    /// Version of the header: 1 or 2.
    pub version: u8,
}

const _: () = assert!(size_of::<Header>() == HEADER_LEN);

impl Header {
    /// The current version.
    pub const VERSION: u8 = 2;

    /// A header of the current version with zeros in all other fields but the type of the detector.
    #[must_use]
    pub fn new(detector: Detector) -> Self {
        Self {
            detector: detector.code(),
            version: Self::VERSION,
            ..Self::new_zeroed()
        }
    }

    /// Checks that a payload of `len` bytes with this header is a packet of the detector.
    ///
    /// # Errors
    /// The first field that contradicts the layout, in the order version, type, length, number.
    #[inline]
    pub fn check(&self, len: usize, layout: &Layout) -> Result<(), PacketError> {
        let packet = self.packet_number.get();
        let is_of_detector = self.detector == layout.detector().code()
            && matches!(self.version, 1..=Self::VERSION)
            && len == layout.payload_bytes()
            && (packet as usize) < layout.packets();
        if is_of_detector {
            return Ok(());
        }
        Err(self.contradiction(len, layout))
    }

    /// What [`check`](Self::check) found.
    #[cold]
    fn contradiction(&self, len: usize, layout: &Layout) -> PacketError {
        let expected = layout.detector();
        if !matches!(self.version, 1..=Self::VERSION) {
            PacketError::Version(self.version)
        } else if self.detector != expected.code() {
            PacketError::Detector {
                found: self.detector,
                expected,
            }
        } else if len != layout.payload_bytes() {
            PacketError::Size {
                have: len,
                need: layout.payload_bytes(),
            }
        } else {
            PacketError::OutOfRange {
                packet: self.packet_number.get(),
                packets: layout.packets(),
            }
        }
    }
}

/// Why a payload is no packet of the detector. [`PacketCauses::of`](super::PacketCauses::of) gives the
/// drop cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PacketError {
    /// The length is wrong.
    #[error(
        "a payload of {have} B where {need} B are expected: compare the detector's bits a pixel, link speed and rows with the configuration"
    )]
    Size {
        /// Bytes of the payload.
        have: usize,
        /// Bytes that the layout has.
        need: usize,
    },
    /// The version is unknown.
    #[error(
        "version {0} of the packet header where 1 or 2 is read: compare the detector's firmware"
    )]
    Version(u8),
    /// The packet is of another type of detector.
    #[error(
        "detector type {found} where {expected} is configured: compare the detector with the configuration"
    )]
    Detector {
        /// The type in the packet.
        found: u8,
        /// The configured one.
        expected: Detector,
    },
    /// The number of the packet is too large.
    #[error(
        "packet number {packet} where a frame has {packets} packets an interface: compare the number of UDP interfaces with the configuration"
    )]
    OutOfRange {
        /// The number in the packet.
        packet: u32,
        /// Packets of a frame from each interface.
        packets: usize,
    },
}

/// A packet whose header was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its header.
    pub header: &'a Header,
    /// Its pixels: [`Layout::packet_bytes`] bytes.
    pub pixels: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Checks the packet in `payload`, a whole UDP payload.
    ///
    /// # Errors
    /// As [`Header::check`]; a payload shorter than a header has a wrong size.
    #[inline]
    pub fn parse(payload: &'a [u8], layout: &Layout) -> Result<Self, PacketError> {
        let (header, pixels) = Header::ref_from_prefix(payload).map_err(|_| PacketError::Size {
            have: payload.len(),
            need: layout.payload_bytes(),
        })?;
        header.check(payload.len(), layout)?;
        Ok(Self { header, pixels })
    }
}

/// Why a packet could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a buffer of {have} B for a packet of {need} B: give it a larger buffer")]
pub struct WriteError {
    /// Bytes of the packet.
    pub need: usize,
    /// Bytes of the buffer.
    pub have: usize,
}

/// Writes a packet to the start of `out`; returns its length. Nothing is checked against a layout, so
/// that wrong packets can be written for tests.
///
/// # Errors
/// The buffer is too short.
#[inline]
pub fn write_packet(header: &Header, pixels: &[u8], out: &mut [u8]) -> Result<usize, WriteError> {
    let (have, need) = (out.len(), HEADER_LEN + pixels.len());
    let Some(out) = out.get_mut(..need) else {
        return Err(WriteError { need, have });
    };
    let (start, rest) = out.split_at_mut(HEADER_LEN);
    start.copy_from_slice(header.as_bytes());
    rest.copy_from_slice(pixels);
    Ok(need)
}
