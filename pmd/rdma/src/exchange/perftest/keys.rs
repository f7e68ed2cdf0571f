//! What each end tells of its queue pair and its buffer.

use zerocopy::network_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::access::{Key, RemoteBuffer};
use crate::address::{Psn, QpAddress, QpNumber, gid_of, ip_of};
use crate::exchange::ExchangeError;
use crate::exchange::text::Fields;

/// Bytes of keys as text.
pub const KEYS_BYTES: usize = 108;
/// Bytes of keys over a queue pair.
pub const PACKED_KEYS_BYTES: usize = 56;

pub(super) const STEP: &str = "perftest's exchange";
const EXPECTED: &str = "keys of a queue pair with the GID of an IPv4 address: see option -x";

/// What an end tells of its queue pair and buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    /// Address of the queue pair.
    pub qp: QpAddress,
    /// READs that it takes at a time.
    pub reads: u8,
    /// Its buffer, for WRITE and READ.
    pub buffer: RemoteBuffer,
}

impl Keys {
    /// The keys as the tools write them.
    #[must_use]
    pub fn to_text(&self) -> [u8; KEYS_BYTES] {
        let (qp, buffer) = (&self.qp, &self.buffer);
        let gid = gid_of(qp.ip).map(|byte| format!("{byte:02x}")).join(":");
        let text = format!(
            "0000:{:04x}:{}:{:06x}:{}:{:016x}:{gid}:00000000:\0",
            self.reads,
            qp.number,
            qp.psn.get(),
            buffer.key,
            buffer.address
        );
        let mut bytes = [0; KEYS_BYTES];
        for (to, from) in bytes.iter_mut().zip(text.bytes()) {
            *to = from;
        }
        bytes
    }

    /// The keys of a peer.
    ///
    /// # Errors
    /// It is not such a text, or not that of a queue pair at an IPv4 address.
    pub fn from_text(text: &[u8; KEYS_BYTES]) -> Result<Self, ExchangeError> {
        let error = || ExchangeError::malformed(STEP, text, EXPECTED);
        Raw::from_text(text)?.keys().ok_or_else(error)
    }

    /// The keys as the tools send them over a queue pair.
    #[must_use]
    pub fn to_packed(&self) -> [u8; PACKED_KEYS_BYTES] {
        let packed = Packed {
            reads: u32::from(self.reads).into(),
            number: self.qp.number.get().into(),
            psn: self.qp.psn.get().into(),
            key: self.buffer.key.0.into(),
            address: self.buffer.address.into(),
            gid: gid_of(self.qp.ip),
            ..Packed::new_zeroed()
        };
        zerocopy::transmute!(packed)
    }

    /// The keys of a peer.
    ///
    /// # Errors
    /// They are not those of a queue pair at an IPv4 address.
    pub fn from_packed(packed: &[u8; PACKED_KEYS_BYTES]) -> Result<Self, ExchangeError> {
        let fields: &Packed = zerocopy::transmute_ref!(packed);
        let raw = Raw {
            reads: fields.reads.get().into(),
            number: fields.number.get().into(),
            psn: fields.psn.get().into(),
            key: fields.key.get().into(),
            address: fields.address.get(),
            gid: fields.gid,
        };
        raw.keys()
            .ok_or_else(|| ExchangeError::malformed(STEP, packed, EXPECTED))
    }
}

/// Keys over a queue pair. The tools fill what is not named here with anything.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Packed {
    lid: U32,
    reads: U32,
    number: U32,
    psn: U32,
    key: U32,
    unnamed: U32,
    address: U64,
    gid: [u8; 16],
    srq: U32,
    gid_index: U32,
}

/// The fields of a message with keys.
struct Raw {
    reads: u64,
    number: u64,
    psn: u64,
    key: u64,
    address: u64,
    gid: [u8; 16],
}

impl Raw {
    fn from_text(text: &[u8; KEYS_BYTES]) -> Result<Self, ExchangeError> {
        let expected = "`LID:READS:QPN:PSN:KEY:ADDRESS:GID:SRQN:` of 4, 4, 6, 6, 8, 16, 16 times 2 and 8 \
                        hexadecimal digits (an end without a GID sends fewer: see option -x)";
        let mut fields = Fields::new(text, STEP, expected);
        let mut next = |digits| {
            let number = fields.hex(digits)?;
            fields.mark(b':').map(|()| number)
        };
        next(4)?;
        let mut raw = Self {
            reads: next(4)?,
            number: next(6)?,
            psn: next(6)?,
            key: next(8)?,
            address: next(16)?,
            gid: [0; 16],
        };
        for byte in &mut raw.gid {
            *byte = next(2)? as u8;
        }
        next(8)?;
        fields.mark(0)?;
        Ok(raw)
    }

    fn keys(&self) -> Option<Keys> {
        let number = u32::try_from(self.number).ok()?;
        let psn = u32::try_from(self.psn).ok().and_then(QpNumber::new)?;
        Some(Keys {
            qp: QpAddress {
                number: QpNumber::connectable(number)?,
                psn: Psn::new(psn.get()),
                ip: ip_of(self.gid)?,
                mac: None,
            },
            reads: u8::try_from(self.reads).ok()?,
            buffer: RemoteBuffer {
                address: self.address,
                key: Key(u32::try_from(self.key).ok()?),
            },
        })
    }
}
