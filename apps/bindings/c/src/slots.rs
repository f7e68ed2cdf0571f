//! Buffers in the program's hands, by their numbers in the pool.
//!
//! A frame that is handed out gets a ticket, which no other frame of the process has or had. It comes
//! back only with the ticket of its slot: not twice, not to another port, and not as what the program
//! made up.

use pollux_mempool::Mbuf;

use crate::frame::pollux_frame;
use crate::refused::Reason;

/// Bits of a ticket below the number of its port.
const COUNT_BITS: u32 = 40;

#[derive(Default)]
struct Slot {
    mbuf: Option<Mbuf>,
    /// 0 while there is no buffer.
    ticket: u64,
}

/// The slots of a port.
pub(crate) struct Slots {
    all: Box<[Slot]>,
    port: u64,
    count: u64,
    held: usize,
}

impl Slots {
    /// A slot for each buffer of a pool. `port` is the number of the port in the process, from 1 on.
    pub(crate) fn new(port: u32, buffers: usize) -> Self {
        Self {
            all: (0..buffers).map(|_| Slot::default()).collect(),
            port: u64::from(port) << COUNT_BITS,
            count: 0,
            held: 0,
        }
    }

    /// Number of frames in the program's hands.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Keeps a buffer, and writes its slot and its ticket into the frame that is handed out.
    #[inline]
    pub(crate) fn hand_out(&mut self, mbuf: Mbuf, frame: &mut pollux_frame) {
        let index = mbuf.index();
        // All buffers of a port are of its pool.
        let Some(slot) = self.all.get_mut(index as usize) else {
            return;
        };
        self.count = self.count.wrapping_add(1) & ((1 << COUNT_BITS) - 1);
        slot.ticket = self.port | self.count;
        frame.slot = index;
        frame.ticket = slot.ticket;
        slot.mbuf = Some(mbuf);
        self.held += 1;
    }

    /// The buffer of a frame that the program still has.
    #[inline]
    pub(crate) fn get(&mut self, frame: &pollux_frame) -> Result<&mut Mbuf, Reason> {
        let slot = self.all.get_mut(frame.slot as usize);
        match slot {
            Some(Slot {
                mbuf: Some(mbuf),
                ticket,
            }) if *ticket == frame.ticket => Ok(mbuf),
            _ => Err(reason(self.port, frame)),
        }
    }

    /// Takes a buffer back.
    #[inline]
    pub(crate) fn take_back(&mut self, frame: &pollux_frame) -> Result<Mbuf, Reason> {
        if let Some(slot) = self.all.get_mut(frame.slot as usize)
            && slot.ticket == frame.ticket
            && let Some(mbuf) = slot.mbuf.take()
        {
            slot.ticket = 0;
            self.held -= 1;
            return Ok(mbuf);
        }
        Err(reason(self.port, frame))
    }

    /// Keeps a buffer again that [`take_back`](Self::take_back) gave for this frame, under its old ticket:
    /// copies that the program has of the frame stay valid.
    pub(crate) fn put_back(&mut self, mbuf: Mbuf, frame: &pollux_frame) {
        // All buffers of a port are of its pool.
        let Some(slot) = self.all.get_mut(mbuf.index() as usize) else {
            return;
        };
        slot.ticket = frame.ticket;
        slot.mbuf = Some(mbuf);
        self.held += 1;
    }
}

/// Why the ticket of a frame is not that of its slot.
#[cold]
fn reason(port: u64, frame: &pollux_frame) -> Reason {
    if frame.ticket == 0 {
        Reason::Null
    } else if frame.ticket >> COUNT_BITS == port >> COUNT_BITS {
        Reason::FreedTwice
    } else {
        Reason::OtherPort
    }
}
