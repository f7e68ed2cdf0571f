//! A frame between the file and the port, as the fault injector sees it.

use std::ops::Range;

use pollux_faults::{Frame, mark_congestion};
use pollux_pmd::mempool::time::Ns;
use pollux_pmd::mempool::{Mbuf, PoolCache};
use pollux_pmd::net::headers::EthernetHeader;
use pollux_pmd::net::{ParseOptions, Parsed, parse};

pub(super) struct Outgoing {
    pub(super) mbuf: Mbuf,
    /// Time since the first frame.
    pub(super) due: Ns,
    /// It is a copy, and does not come from the file.
    pub(super) is_copy: bool,
}

impl Outgoing {
    /// Copies the frame, if the pool has buffers. `scratch` holds the longest possible frame.
    pub(super) fn copy(&self, cache: &mut PoolCache, scratch: &mut [u8]) -> Option<Self> {
        let bytes = scratch.get_mut(..self.mbuf.total_len())?;
        self.mbuf.copy_to(0, bytes);
        Some(Self {
            mbuf: cache.alloc_from(bytes)?,
            due: self.due,
            is_copy: true,
        })
    }

    /// Offset from which a changed byte affects a checksum only: the payload of a datagram. In
    /// other frames, the data behind the Ethernet header.
    fn payload(&self) -> Range<usize> {
        let first = self.mbuf.data();
        match parse(first, self.mbuf.total_len(), &ParseOptions::TRUSTED) {
            Ok(Parsed::Udp(udp)) if udp.payload_len > 0 => {
                let start = usize::from(udp.payload_offset);
                start..(start + usize::from(udp.payload_len)).min(first.len())
            }
            _ => size_of::<EthernetHeader>()..first.len(),
        }
    }
}

impl Frame for Outgoing {
    fn due(&self) -> Ns {
        self.due
    }

    fn set_due(&mut self, due: Ns) {
        self.due = due;
    }

    fn len_on_link(&self) -> usize {
        self.mbuf.total_len()
    }

    fn mark(&mut self) -> bool {
        mark_congestion(self.mbuf.data_mut())
    }

    fn corrupt(&mut self, pick: impl FnOnce(usize) -> Option<(usize, u8)>) -> bool {
        let place = self.payload();
        let Some((at, bits)) = pick(place.len()) else {
            return false;
        };
        let byte = self.mbuf.data_mut().get_mut(place.start + at);
        byte.map(|byte| *byte ^= bits).is_some()
    }
}
