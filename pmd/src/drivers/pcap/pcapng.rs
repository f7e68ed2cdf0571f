//! Reader of the pcapng format (draft-ietf-opsawg-pcapng): sections of blocks.
//! [`Writer`](super::Writer) writes it.

use super::error::CaptureError;
use super::link::Link;
use super::record::{Located, MAX_RECORD, Order};
use super::window::Window;

/// Block type of a section header, the same in both byte orders (section 4.1 of the draft).
pub(super) const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
pub(super) const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
pub(super) const INTERFACE_DESCRIPTION: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
pub(super) const INTERFACE_STATISTICS: u32 = 5;
pub(super) const ENHANCED_PACKET: u32 = 6;

/// Smallest block: type and length in front, length behind.
pub(super) const SMALLEST_BLOCK: usize = 12;

/// Longest frame that is written: the limit of libpcap and Wireshark for Ethernet.
pub(super) const MAX_FRAME: usize = 262_144;

/// Unit of an interface's time stamps: option if_tsresol (section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// A number of nanoseconds.
    Nanoseconds(u64),
    /// A nanosecond divided by this number.
    Fraction(u64),
    /// A second divided by 2 to this power.
    Binary(u32),
}

impl Unit {
    const MICROSECOND: Self = Self::Nanoseconds(1000);

    fn from_tsresol(value: u8) -> Self {
        let power = u32::from(value & 0x7f);
        if value & 0x80 != 0 {
            Self::Binary(power)
        } else if power <= 9 {
            Self::Nanoseconds(10_u64.pow(9 - power))
        } else {
            // If the power overflows, 64 bits of ticks are a nanosecond at most.
            Self::Fraction(10_u64.checked_pow(power - 9).unwrap_or(u64::MAX))
        }
    }

    fn to_ns(self, ticks: u64) -> u64 {
        match self {
            Self::Nanoseconds(ns) => ticks.saturating_mul(ns),
            Self::Fraction(divisor) => ticks / divisor,
            Self::Binary(power) => {
                let ns = (u128::from(ticks) * 1_000_000_000) >> power;
                u64::try_from(ns).unwrap_or(u64::MAX)
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Interface {
    link: Link,
    /// Maximum number of captured bytes of a frame; 0: all.
    snaplen: usize,
    unit: Unit,
    /// Seconds to add to each time stamp: option if_tsoffset.
    offset_s: i64,
}

impl Interface {
    /// Parses the body of an interface description block; `None` if it is truncated.
    fn parse(order: Order, body: &[u8]) -> Option<Self> {
        let mut interface = Self {
            link: Link::from_linktype(order.u16(body, 0)?),
            snaplen: order.u32(body, 4)? as usize,
            unit: Unit::MICROSECOND,
            offset_s: 0,
        };
        let mut at = 8;
        while let (Some(code), Some(len)) = (order.u16(body, at), order.u16(body, at + 2)) {
            let value = body.get(at + 4..at + 4 + usize::from(len))?;
            match (code, value) {
                (0, _) => break,
                (9, &[resolution]) => interface.unit = Unit::from_tsresol(resolution),
                (14, value) => {
                    let (first, second) = (order.u32(value, 0)?, order.u32(value, 4)?);
                    let (high, low) = match order {
                        Order::Big => (first, second),
                        Order::Little => (second, first),
                    };
                    interface.offset_s = (u64::from(high) << 32 | u64::from(low)) as i64;
                }
                _ => {}
            }
            at += 4 + usize::from(len).next_multiple_of(4);
        }
        Some(interface)
    }

    fn time(&self, high: u32, low: u32) -> u64 {
        let ns = self.unit.to_ns(u64::from(high) << 32 | u64::from(low));
        ns.saturating_add_signed(self.offset_s.saturating_mul(1_000_000_000))
    }
}

pub(super) struct Pcapng {
    order: Order,
    interfaces: Vec<Interface>,
}

impl Pcapng {
    /// The section header, which determines the byte order, is read as the first block.
    pub(super) fn new() -> Self {
        Self {
            order: Order::Little,
            interfaces: Vec::new(),
        }
    }

    /// Skips blocks up to the next one that holds a frame.
    pub(super) fn locate(&mut self, window: &mut Window) -> Result<Option<Located>, CaptureError> {
        while !window.is_at_end()? {
            let head = window.need(SMALLEST_BLOCK)?;
            let is_section = head.starts_with(&SECTION_HEADER);
            if is_section {
                self.order = if Order::Big.u32(head, 8) == Some(BYTE_ORDER_MAGIC) {
                    Order::Big
                } else if Order::Little.u32(head, 8) == Some(BYTE_ORDER_MAGIC) {
                    Order::Little
                } else {
                    return Err(window.damaged("a section without its byte-order magic"));
                };
            }
            let order = self.order;
            let kind = order.u32(head, 0).unwrap_or_default();
            let len = order.u32(head, 4).unwrap_or_default() as usize;
            if len < SMALLEST_BLOCK || !len.is_multiple_of(4) || len > MAX_RECORD {
                return Err(window.damaged("a block of an impossible length"));
            }
            let block = window.need(len)?;
            if order.u32(block, len - 4) != Some(len as u32) {
                return Err(window.damaged("a block whose two lengths differ"));
            }
            let body = &block[8..len - 4];
            if is_section {
                match (order.u16(body, 4), order.u16(body, 6)) {
                    // 1.2 is the same format, written by old tools (section 4.1).
                    (Some(1), Some(0 | 2)) => self.interfaces.clear(),
                    (Some(major), Some(minor)) => return Err(CaptureError::Version(major, minor)),
                    _ => return Err(window.damaged("a section header that is too short")),
                }
            } else if kind == INTERFACE_DESCRIPTION {
                match Interface::parse(order, body) {
                    Some(interface) => self.interfaces.push(interface),
                    None => {
                        return Err(window.damaged("an interface description that is too short"));
                    }
                }
            } else if matches!(kind, ENHANCED_PACKET | PACKET | SIMPLE_PACKET) {
                return match self.packet(kind, body) {
                    Some(located) => Ok(Some(Located {
                        record: len,
                        ..located
                    })),
                    None => {
                        Err(window.damaged("a packet without interface, or longer than its block"))
                    }
                };
            }
            window.consume(len);
        }
        Ok(None)
    }

    /// Location of the frame in a packet block; `None` if the block is inconsistent.
    fn packet(&self, kind: u32, body: &[u8]) -> Option<Located> {
        let field = |at| self.order.u32(body, at);
        let number = match kind {
            // Section 4.4: always the first interface.
            SIMPLE_PACKET => 0,
            // Appendix A: interface and drop count, 16 bits each.
            PACKET => u32::from(self.order.u16(body, 0)?),
            _ => field(0)?,
        };
        let interface = self.interfaces.get(number as usize)?;
        let (time, captured, original, start) = if kind == SIMPLE_PACKET {
            let original = field(0)? as usize;
            let limit = if interface.snaplen == 0 {
                original
            } else {
                interface.snaplen
            };
            (None, original.min(limit), original, 4_usize)
        } else {
            let time = interface.time(field(4)?, field(8)?);
            (Some(time), field(12)? as usize, field(16)? as usize, 20)
        };
        body.get(start..start.checked_add(captured)?)?;
        Some(Located {
            time,
            link: interface.link,
            data: 8 + start,
            captured,
            original,
            record: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_of_any_resolution_become_nanoseconds() {
        let ns = |tsresol, ticks| Unit::from_tsresol(tsresol).to_ns(ticks);
        assert_eq!(ns(0, 3), 3_000_000_000);
        assert_eq!(ns(6, 1_700_000_000_123_456), 1_700_000_000_123_456_000);
        assert_eq!(ns(9, 7), 7);
        assert_eq!(ns(12, 7_999), 7);
        assert_eq!(ns(0x80 | 0x14, 3 << 19), 1_500_000_000);
        assert_eq!(ns(0x80 | 127, u64::MAX), 0);
        assert_eq!(ns(0, u64::MAX), u64::MAX);
    }
}
