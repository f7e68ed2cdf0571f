//! Views of the transport headers (InfiniBand, 9.2 to 9.5).

use zerocopy::network_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{DEFAULT_PKEY, Opcode};

/// Mask of queue pair numbers, packet and message sequence numbers: 24 bits.
const MASK_24: u32 = 0xff_ffff;

/// Base transport header: 12 bytes.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Bth {
    /// Code of the [`Opcode`].
    pub opcode: u8,
    /// Solicited event \[7\], migration state \[6\], pad count \[5:4\], header version \[3:0\].
    pub flags: u8,
    /// Partition key.
    pub pkey: U16,
    /// Forward congestion \[31\], backward congestion \[30\], destination queue pair \[23:0\].
    pub congestion_qp: U32,
    /// Acknowledge request \[31\], packet sequence number \[23:0\].
    pub ack_psn: U32,
}

impl Bth {
    /// Header of a packet with the default partition key, version 0 and migration state "migrated",
    /// without flags and padding.
    #[must_use]
    #[inline]
    pub fn new(opcode: Opcode, qp: u32, psn: u32) -> Self {
        Self {
            opcode: opcode.code(),
            flags: 0x40,
            pkey: U16::new(DEFAULT_PKEY),
            congestion_qp: U32::new(qp & MASK_24),
            ack_psn: U32::new(psn & MASK_24),
        }
    }

    /// The same header of a packet with `pad` bytes of padding, of which the low two bits count.
    #[must_use]
    #[inline]
    pub fn with_pad(mut self, pad: usize) -> Self {
        self.flags = self.flags & !0x30 | (pad as u8 & 3) << 4;
        self
    }

    /// The same header, which requests an acknowledgement.
    #[must_use]
    #[inline]
    pub fn with_ack_request(mut self, request: bool) -> Self {
        let bit = if request { 1 << 31 } else { 0 };
        self.ack_psn = U32::new(self.ack_psn.get() & MASK_24 | bit);
        self
    }

    /// The same header, which requests an event at the responder.
    #[must_use]
    #[inline]
    pub fn with_solicited(mut self, solicited: bool) -> Self {
        self.flags = self.flags & !0x80 | if solicited { 0x80 } else { 0 };
        self
    }

    /// Whether the responder should generate an event.
    #[must_use]
    #[inline]
    pub fn solicited(&self) -> bool {
        self.flags & 0x80 != 0
    }

    /// Migration state: true for "migrated".
    #[must_use]
    #[inline]
    pub fn migrated(&self) -> bool {
        self.flags & 0x40 != 0
    }

    /// Bytes of padding behind the payload, 0 to 3.
    #[must_use]
    #[inline]
    pub fn pad(&self) -> usize {
        usize::from(self.flags >> 4 & 3)
    }

    /// Version of the transport headers; 0 is the only one.
    #[must_use]
    #[inline]
    pub fn version(&self) -> u8 {
        self.flags & 0x0f
    }

    /// Forward explicit congestion notification.
    #[must_use]
    #[inline]
    pub fn forward_congestion(&self) -> bool {
        self.congestion_qp.get() & 1 << 31 != 0
    }

    /// Backward explicit congestion notification: set in a congestion notification packet.
    #[must_use]
    #[inline]
    pub fn backward_congestion(&self) -> bool {
        self.congestion_qp.get() & 1 << 30 != 0
    }

    /// Number of the destination queue pair.
    #[must_use]
    #[inline]
    pub fn qp(&self) -> u32 {
        self.congestion_qp.get() & MASK_24
    }

    /// Whether the requester asks for an acknowledgement.
    #[must_use]
    #[inline]
    pub fn ack_request(&self) -> bool {
        self.ack_psn.get() & 1 << 31 != 0
    }

    /// Packet sequence number.
    #[must_use]
    #[inline]
    pub fn psn(&self) -> u32 {
        self.ack_psn.get() & MASK_24
    }
}

/// RDMA extended transport header: 16 bytes. Of the first packet of a WRITE, and of READ requests.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Reth {
    /// Address in the responder's memory.
    pub address: U64,
    /// Key of the memory.
    pub key: U32,
    /// Bytes of the message.
    pub length: U32,
}

/// ACK extended transport header: 4 bytes. Of acknowledgements and of READ responses but the middle ones.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Aeth {
    /// Syndrome \[31:24\], message sequence number \[23:0\].
    pub syndrome_msn: U32,
}

impl Aeth {
    /// A header with a syndrome and a message sequence number.
    #[must_use]
    #[inline]
    pub fn new(syndrome: u8, msn: u32) -> Self {
        Self {
            syndrome_msn: U32::new(u32::from(syndrome) << 24 | msn & MASK_24),
        }
    }

    /// Code of the [`Syndrome`](super::Syndrome).
    #[must_use]
    #[inline]
    pub fn syndrome(&self) -> u8 {
        (self.syndrome_msn.get() >> 24) as u8
    }

    /// Message sequence number: messages that the responder has completed.
    #[must_use]
    #[inline]
    pub fn msn(&self) -> u32 {
        self.syndrome_msn.get() & MASK_24
    }
}

/// Immediate data: 4 bytes.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ImmDt {
    /// The number.
    pub data: U32,
}

/// Datagram extended transport header: 8 bytes. Of unreliable datagrams.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Deth {
    /// Key of the destination queue.
    pub queue_key: U32,
    /// Reserved \[31:24\], source queue pair \[23:0\].
    pub source_qp: U32,
}

impl Deth {
    /// A header with the key of the destination and the number of the source.
    #[must_use]
    pub fn new(queue_key: u32, source_qp: u32) -> Self {
        Self {
            queue_key: U32::new(queue_key),
            source_qp: U32::new(source_qp & MASK_24),
        }
    }

    /// Number of the source queue pair.
    #[must_use]
    pub fn source(&self) -> u32 {
        self.source_qp.get() & MASK_24
    }
}

const _: () = {
    assert!(size_of::<Bth>() == 12);
    assert!(size_of::<Reth>() == 16);
    assert!(size_of::<Aeth>() == 4);
    assert!(size_of::<ImmDt>() == 4);
    assert!(size_of::<Deth>() == 8);
};
