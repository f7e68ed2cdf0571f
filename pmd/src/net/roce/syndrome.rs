//! Syndrome of an acknowledgement (InfiniBand, 9.7.5.1.3 and 9.7.5.2.8).

use pollux_mempool::time::Ns;

/// Why a responder refuses a request (table 48).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NakCode {
    /// A packet sequence number was skipped: packets are missing.
    Sequence,
    /// The request is not executed by this responder, or contradicts itself.
    InvalidRequest,
    /// Wrong key, range or rights.
    RemoteAccess,
    /// The responder failed.
    RemoteOperation,
}

/// What a responder says of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syndrome {
    /// All up to its sequence number is done. The count is a code of receives that are posted
    /// (table 47); 31: no count.
    Ack {
        /// The code.
        credits: u8,
    },
    /// The responder is not ready: the request has to be repeated after a time.
    NotReady(RnrTimer),
    /// The request is refused.
    Nak(NakCode),
}

impl Syndrome {
    /// An acknowledgement without a count.
    pub const ACK: Self = Self::Ack { credits: 31 };

    /// Its code; `None` for reserved codes.
    #[must_use]
    #[inline]
    pub const fn from_code(code: u8) -> Option<Self> {
        let value = code & 0x1f;
        match (code >> 5, value) {
            (0b000, _) => Some(Self::Ack { credits: value }),
            (0b001, _) => Some(Self::NotReady(RnrTimer::new(value))),
            (0b011, 0) => Some(Self::Nak(NakCode::Sequence)),
            (0b011, 1) => Some(Self::Nak(NakCode::InvalidRequest)),
            (0b011, 2) => Some(Self::Nak(NakCode::RemoteAccess)),
            (0b011, 3) => Some(Self::Nak(NakCode::RemoteOperation)),
            _ => None,
        }
    }

    /// Its code.
    #[must_use]
    #[inline]
    pub const fn code(self) -> u8 {
        match self {
            Self::Ack { credits } => credits & 0x1f,
            Self::NotReady(timer) => 0x20 | timer.code(),
            Self::Nak(code) => 0x60 | code as u8,
        }
    }
}

/// Code of the time after which a request is repeated to a responder that is not ready (table 45).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RnrTimer(u8);

/// Times of the codes, in units of 10 us.
const RNR_TIMES: [u32; 32] = [
    65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
    2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
];

impl RnrTimer {
    /// The low five bits of a code.
    #[must_use]
    #[inline]
    pub const fn new(code: u8) -> Self {
        Self(code & 0x1f)
    }

    /// The code.
    #[must_use]
    #[inline]
    pub const fn code(self) -> u8 {
        self.0
    }

    /// The time: 10 us to 655.36 ms, which is code 0.
    #[must_use]
    pub const fn time(self) -> Ns {
        Ns(RNR_TIMES[self.0 as usize & 0x1f] as u64 * 10_000)
    }
}
