//! Opcodes (InfiniBand, table 38; congestion notification: annex A17.9.3).

use super::headers::{Aeth, Deth, ImmDt, Reth};

/// Service of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// Reliable connection.
    Reliable,
    /// Unreliable connection.
    Unreliable,
    /// Unreliable datagram.
    Datagram,
    /// Congestion notification.
    Congestion,
}

/// Operation of which a packet is a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// SEND.
    Send,
    /// SEND with invalidate.
    SendInvalidate,
    /// RDMA WRITE.
    Write,
    /// RDMA READ request.
    ReadRequest,
    /// RDMA READ response.
    ReadResponse,
    /// Acknowledgement, positive or negative.
    Acknowledge,
    /// Atomic compare and swap, or fetch and add.
    Atomic,
    /// Acknowledgement of an atomic.
    AtomicAcknowledge,
    /// Congestion notification.
    Congestion,
}

/// Place of a packet in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The first of several.
    First,
    /// Neither the first nor the last.
    Middle,
    /// The last of several.
    Last,
    /// The only one.
    Only,
}

impl Part {
    /// The place of packet `n` of `packets`.
    #[must_use]
    #[inline]
    pub const fn of(n: u32, packets: u32) -> Self {
        match (n == 0, n.wrapping_add(1) >= packets) {
            (true, true) => Self::Only,
            (true, false) => Self::First,
            (false, true) => Self::Last,
            (false, false) => Self::Middle,
        }
    }

    /// Whether a message begins with it.
    #[must_use]
    #[inline]
    pub const fn begins(self) -> bool {
        matches!(self, Self::First | Self::Only)
    }

    /// Whether a message ends with it.
    #[must_use]
    #[inline]
    pub const fn ends(self) -> bool {
        matches!(self, Self::Last | Self::Only)
    }
}

macro_rules! opcodes {
    ($($name:ident $code:literal $service:ident $operation:ident $part:ident $immediate:literal,)*) => {
        /// Opcode of a packet.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "a name states service, operation and place")]
        pub enum Opcode {
            $($name = $code,)*
        }

        impl Opcode {
            /// All, ascending.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The opcode of a code.
            #[must_use]
            #[inline]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Its service.
            #[must_use]
            #[inline]
            pub const fn service(self) -> Service {
                match self {
                    $(Self::$name => Service::$service,)*
                }
            }

            /// Its operation.
            #[must_use]
            #[inline]
            pub const fn operation(self) -> Operation {
                match self {
                    $(Self::$name => Operation::$operation,)*
                }
            }

            /// Its place in the message.
            #[must_use]
            #[inline]
            pub const fn part(self) -> Part {
                match self {
                    $(Self::$name => Part::$part,)*
                }
            }

            /// Whether the packet carries immediate data.
            #[must_use]
            #[inline]
            pub const fn has_immediate(self) -> bool {
                match self {
                    $(Self::$name => $immediate,)*
                }
            }
        }
    };
}

opcodes! {
    RcSendFirst 0x00 Reliable Send First false,
    RcSendMiddle 0x01 Reliable Send Middle false,
    RcSendLast 0x02 Reliable Send Last false,
    RcSendLastImmediate 0x03 Reliable Send Last true,
    RcSendOnly 0x04 Reliable Send Only false,
    RcSendOnlyImmediate 0x05 Reliable Send Only true,
    RcWriteFirst 0x06 Reliable Write First false,
    RcWriteMiddle 0x07 Reliable Write Middle false,
    RcWriteLast 0x08 Reliable Write Last false,
    RcWriteLastImmediate 0x09 Reliable Write Last true,
    RcWriteOnly 0x0a Reliable Write Only false,
    RcWriteOnlyImmediate 0x0b Reliable Write Only true,
    RcReadRequest 0x0c Reliable ReadRequest Only false,
    RcReadResponseFirst 0x0d Reliable ReadResponse First false,
    RcReadResponseMiddle 0x0e Reliable ReadResponse Middle false,
    RcReadResponseLast 0x0f Reliable ReadResponse Last false,
    RcReadResponseOnly 0x10 Reliable ReadResponse Only false,
    RcAcknowledge 0x11 Reliable Acknowledge Only false,
    RcAtomicAcknowledge 0x12 Reliable AtomicAcknowledge Only false,
    RcCompareSwap 0x13 Reliable Atomic Only false,
    RcFetchAdd 0x14 Reliable Atomic Only false,
    RcSendLastInvalidate 0x16 Reliable SendInvalidate Last false,
    RcSendOnlyInvalidate 0x17 Reliable SendInvalidate Only false,
    UcSendFirst 0x20 Unreliable Send First false,
    UcSendMiddle 0x21 Unreliable Send Middle false,
    UcSendLast 0x22 Unreliable Send Last false,
    UcSendLastImmediate 0x23 Unreliable Send Last true,
    UcSendOnly 0x24 Unreliable Send Only false,
    UcSendOnlyImmediate 0x25 Unreliable Send Only true,
    UcWriteFirst 0x26 Unreliable Write First false,
    UcWriteMiddle 0x27 Unreliable Write Middle false,
    UcWriteLast 0x28 Unreliable Write Last false,
    UcWriteLastImmediate 0x29 Unreliable Write Last true,
    UcWriteOnly 0x2a Unreliable Write Only false,
    UcWriteOnlyImmediate 0x2b Unreliable Write Only true,
    UdSendOnly 0x64 Datagram Send Only false,
    UdSendOnlyImmediate 0x65 Datagram Send Only true,
    Congestion 0x81 Congestion Congestion Only false,
}

impl Opcode {
    /// Its code.
    #[must_use]
    #[inline]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The opcode of a packet of a SEND or WRITE over a connection. Immediate data are in the last packet
    /// only; `None` if the service or the operation is another.
    #[must_use]
    #[inline]
    pub const fn message(
        service: Service,
        operation: Operation,
        part: Part,
        immediate: bool,
    ) -> Option<Self> {
        let service = match service {
            Service::Reliable => Self::RcSendFirst.code(),
            Service::Unreliable => Self::UcSendFirst.code(),
            Service::Datagram | Service::Congestion => return None,
        };
        let operation = match operation {
            Operation::Send => 0,
            Operation::Write => Self::RcWriteFirst.code(),
            _ => return None,
        };
        let part = match (part, immediate) {
            (Part::First, _) => 0,
            (Part::Middle, _) => 1,
            (Part::Last, false) => 2,
            (Part::Last, true) => 3,
            (Part::Only, false) => 4,
            (Part::Only, true) => 5,
        };
        Self::from_code(service + operation + part)
    }

    /// The opcode of a READ response.
    #[must_use]
    #[inline]
    pub const fn read_response(part: Part) -> Self {
        match part {
            Part::First => Self::RcReadResponseFirst,
            Part::Middle => Self::RcReadResponseMiddle,
            Part::Last => Self::RcReadResponseLast,
            Part::Only => Self::RcReadResponseOnly,
        }
    }

    /// Whether the packet carries an [`Reth`].
    #[must_use]
    #[inline]
    pub const fn has_reth(self) -> bool {
        match self.operation() {
            Operation::Write => self.part().begins(),
            Operation::ReadRequest => true,
            _ => false,
        }
    }

    /// Whether the packet carries an [`Aeth`].
    #[must_use]
    #[inline]
    pub const fn has_aeth(self) -> bool {
        match self.operation() {
            Operation::ReadResponse => !matches!(self.part(), Part::Middle),
            Operation::Acknowledge | Operation::AtomicAcknowledge => true,
            _ => false,
        }
    }

    /// Whether the packet carries a [`Deth`].
    #[must_use]
    #[inline]
    pub const fn has_deth(self) -> bool {
        matches!(self.service(), Service::Datagram)
    }

    /// Bytes of the headers between the [`Bth`](super::Bth) and the payload.
    #[must_use]
    #[inline]
    pub const fn extended_len(self) -> usize {
        let other = match self.operation() {
            Operation::SendInvalidate => 4,
            Operation::Atomic => 28,
            Operation::AtomicAcknowledge => 8,
            Operation::Congestion => 16,
            _ => 0,
        };
        let reth = if self.has_reth() {
            size_of::<Reth>()
        } else {
            0
        };
        let aeth = if self.has_aeth() {
            size_of::<Aeth>()
        } else {
            0
        };
        let deth = if self.has_deth() {
            size_of::<Deth>()
        } else {
            0
        };
        let immediate = if self.has_immediate() {
            size_of::<ImmDt>()
        } else {
            0
        };
        reth + aeth + deth + immediate + other
    }
}
