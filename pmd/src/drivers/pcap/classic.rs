//! The classic pcap format (draft-ietf-opsawg-pcap): a file header, then records.

use super::error::CaptureError;
use super::link::Link;
use super::record::{Located, MAX_RECORD, Order};
use super::window::Window;

/// Section 4 of the draft.
const FILE_HEADER: usize = 24;
/// Section 5 of the draft.
const RECORD_HEADER: usize = 16;
/// Record header of the "modified" format of some old Linux systems: interface, protocol and packet
/// type follow.
const MODIFIED_RECORD_HEADER: usize = 24;

pub(super) struct Classic {
    order: Order,
    /// Nanoseconds in one unit of the fractional part of a time stamp.
    fraction_ns: u64,
    record_header: usize,
    link: Link,
}

impl Classic {
    /// Parses the file header.
    pub(super) fn new(window: &mut Window) -> Result<Self, CaptureError> {
        let magic = window
            .peek(4)
            .ok()
            .and_then(|bytes| bytes.first_chunk().copied());
        let (fraction_ns, record_header, order) = match magic {
            Some([0xa1, 0xb2, 0xc3, 0xd4]) => (1000, RECORD_HEADER, Order::Big),
            Some([0xd4, 0xc3, 0xb2, 0xa1]) => (1000, RECORD_HEADER, Order::Little),
            Some([0xa1, 0xb2, 0x3c, 0x4d]) => (1, RECORD_HEADER, Order::Big),
            Some([0x4d, 0x3c, 0xb2, 0xa1]) => (1, RECORD_HEADER, Order::Little),
            Some([0xa1, 0xb2, 0xcd, 0x34]) => (1000, MODIFIED_RECORD_HEADER, Order::Big),
            Some([0x34, 0xcd, 0xb2, 0xa1]) => (1000, MODIFIED_RECORD_HEADER, Order::Little),
            _ => return Err(CaptureError::NotACapture),
        };
        let header = window.need(FILE_HEADER)?;
        let field = |at| order.u16(header, at).unwrap_or_default();
        let (major, minor) = (field(4), field(6));
        if (major, minor) != (2, 4) {
            return Err(CaptureError::Version(major, minor));
        }
        // The upper bits of the link type encode the length of a frame check sequence; a trailing
        // one counts as Ethernet padding.
        let link = Link::from_linktype(order.u32(header, 20).unwrap_or_default() as u16);
        window.consume(FILE_HEADER);
        Ok(Self {
            order,
            fraction_ns,
            record_header,
            link,
        })
    }

    pub(super) fn locate(&mut self, window: &mut Window) -> Result<Option<Located>, CaptureError> {
        if window.is_at_end()? {
            return Ok(None);
        }
        let header = window.need(self.record_header)?;
        let field = |at| self.order.u32(header, at).unwrap_or_default();
        let time = u64::from(field(0)) * 1_000_000_000 + u64::from(field(4)) * self.fraction_ns;
        let (captured, original) = (field(8) as usize, field(12) as usize);
        if captured > MAX_RECORD {
            return Err(window.damaged("a record of more than 16 MiB"));
        }
        let record = self.record_header + captured;
        window.need(record)?;
        Ok(Some(Located {
            time: Some(time),
            link: self.link,
            data: self.record_header,
            captured,
            original,
            record,
        }))
    }
}
