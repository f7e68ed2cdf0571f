//! A packet in the payload of a UDP datagram.

use zerocopy::FromBytes;

use super::headers::{Aeth, Bth, Deth, ImmDt, Reth};
use super::{ICRC_LEN, Opcode};

/// Why a packet cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum PacketError {
    /// The datagram ends before the headers that the opcode asks for, its padding or its ICRC.
    #[error("{len} B: too short for the headers, the padding and the ICRC")]
    Truncated {
        /// Bytes of the datagram.
        len: usize,
    },
    /// The opcode is none.
    #[error("unknown opcode {0:#04x}")]
    Opcode(u8),
    /// The version of the headers is not 0.
    #[error("version {0} of the transport headers")]
    Version(u8),
    /// Payload and padding are not a multiple of four bytes.
    #[error("payload and padding of {0} B are no multiple of 4")]
    Padding(usize),
}

/// A packet whose lengths are checked. The ICRC is not: see [`icrc`](super::icrc).
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Its opcode.
    pub opcode: Opcode,
    /// Base transport header.
    pub bth: &'a Bth,
    /// The headers behind the BTH: as many bytes as the opcode asks for.
    extended: &'a [u8],
    /// The data, without padding.
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads the payload of a UDP datagram.
    ///
    /// # Errors
    /// A datagram that is too short for its opcode, an unknown opcode or version, or a length that
    /// contradicts the padding.
    #[inline]
    pub fn parse(datagram: &'a [u8]) -> Result<Self, PacketError> {
        let truncated = PacketError::Truncated {
            len: datagram.len(),
        };
        let (bth, rest) = Bth::ref_from_prefix(datagram).map_err(|_| truncated)?;
        let opcode = Opcode::from_code(bth.opcode).ok_or(PacketError::Opcode(bth.opcode))?;
        if bth.version() != 0 {
            return Err(PacketError::Version(bth.version()));
        }
        let (extended, rest) = rest
            .split_at_checked(opcode.extended_len())
            .ok_or(truncated)?;
        let padded = rest.len().checked_sub(ICRC_LEN).ok_or(truncated)?;
        let len = padded.checked_sub(bth.pad()).ok_or(truncated)?;
        if padded % 4 != 0 {
            return Err(PacketError::Padding(padded));
        }
        Ok(Self {
            opcode,
            bth,
            extended,
            payload: rest.get(..len).unwrap_or_default(),
        })
    }

    /// RDMA header, if the packet has one.
    #[must_use]
    #[inline]
    pub fn reth(&self) -> Option<&'a Reth> {
        self.opcode.has_reth().then(|| self.header())?
    }

    /// Acknowledgement header, if the packet has one.
    #[must_use]
    #[inline]
    pub fn aeth(&self) -> Option<&'a Aeth> {
        self.opcode.has_aeth().then(|| self.header())?
    }

    /// Datagram header, if the packet has one.
    #[must_use]
    #[inline]
    pub fn deth(&self) -> Option<&'a Deth> {
        self.opcode.has_deth().then(|| self.header())?
    }

    /// Immediate data, if the packet has them.
    #[must_use]
    #[inline]
    pub fn immediate(&self) -> Option<u32> {
        if !self.opcode.has_immediate() {
            return None;
        }
        // They are the last of the headers.
        let (_, immediate) = ImmDt::ref_from_suffix(self.extended).ok()?;
        Some(immediate.data.get())
    }

    /// The first header behind the BTH.
    #[inline]
    fn header<T>(&self) -> Option<&'a T>
    where
        T: FromBytes + zerocopy::KnownLayout + zerocopy::Immutable + zerocopy::Unaligned,
    {
        T::ref_from_prefix(self.extended)
            .ok()
            .map(|(header, _)| header)
    }
}
