//! The physical function's end of the mailboxes. A mailbox is a buffer of 64 bytes shared by a
//! virtual function (VF) and the physical one (PF), and a register on each side with the owner of
//! the buffer and the pending events (datasheet section 8.14).

use super::message::{Message, Reply, notice};
use super::registers::{
    MAILBOX_MEMORY, MBVFICR, MBVFICR_ACKNOWLEDGED, MBVFICR_ASKED, P2VMAILBOX,
    P2VMAILBOX_ACKNOWLEDGE, P2VMAILBOX_PF_HAS_BUFFER, P2VMAILBOX_SENT, P2VMAILBOX_TAKE_FROM_VF,
    VFLRE,
};
use crate::bus::Bus;

/// Events since the last read: a bit for each VF.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Events {
    /// The VF has written a message.
    pub(super) asked: u32,
    /// The VF has read a message.
    pub(super) read: u32,
    /// The VF was reset, by its driver or by the system.
    pub(super) reset: u32,
}

/// The PF's end of all mailboxes.
pub(super) struct PfEnd<B>(pub(super) B);

impl<B: Bus> PfEnd<B> {
    /// Reads and clears the events.
    pub(super) fn events(&self) -> Events {
        let (news, reset) = (self.0.read32(MBVFICR.at), self.0.read32(VFLRE.at));
        if news == u32::MAX {
            // The device is gone: half of the bits mean nothing.
            return Events::default();
        }
        // Write ones to clear, before the messages are read: a later event sets its bit again.
        self.0.write32(MBVFICR.at, news);
        self.0.write32(VFLRE.at, reset);
        Events {
            asked: news & MBVFICR_ASKED,
            read: (news & MBVFICR_ACKNOWLEDGED) >> MBVFICR_ACKNOWLEDGED.trailing_zeros(),
            reset,
        }
    }

    /// A VF's message.
    pub(super) fn take(&self, vf: usize) -> Option<Message> {
        self.lock(vf).then(|| {
            let message = std::array::from_fn(|i| self.0.read32(word(vf, i)));
            // Gives the buffer back, too.
            self.0.write32(P2VMAILBOX.of(vf), P2VMAILBOX_ACKNOWLEDGE);
            message
        })
    }

    /// Replies to the message whose first word was `asked`. A VF that has taken the buffer again
    /// gets no reply.
    pub(super) fn answer(&self, vf: usize, asked: u32, reply: Reply) {
        if self.lock(vf) {
            let (words, len) = reply.message(asked);
            for (i, value) in words.into_iter().take(len).enumerate() {
                self.0.write32(word(vf, i), value);
            }
            self.0.write32(P2VMAILBOX.of(vf), P2VMAILBOX_SENT);
        }
    }

    /// Sends a notice to a VF, with whether it may continue to send requests. Returns false and
    /// sends nothing if the VF holds the buffer or has a request pending.
    pub(super) fn notify(&self, vf: usize, is_clear: bool) -> bool {
        let at = P2VMAILBOX.of(vf);
        self.0.write32(at, P2VMAILBOX_PF_HAS_BUFFER);
        if self.0.read32(at) & P2VMAILBOX_PF_HAS_BUFFER == 0 {
            return false;
        }
        // A request from before the buffer was taken is still in it.
        let has_asked = self.0.read32(MBVFICR.at) & 1 << vf != 0;
        if has_asked {
            self.0.write32(at, 0);
        } else {
            self.0.write32(word(vf, 0), notice(is_clear));
            self.0.write32(at, P2VMAILBOX_SENT);
        }
        !has_asked
    }

    /// Takes the buffer, from the VF if necessary: a VF may hold it only while it writes a message,
    /// and must not make the PF wait.
    fn lock(&self, vf: usize) -> bool {
        let at = P2VMAILBOX.of(vf);
        let once = || {
            self.0.write32(at, P2VMAILBOX_PF_HAS_BUFFER);
            self.0.read32(at) & P2VMAILBOX_PF_HAS_BUFFER != 0
        };
        once() || {
            self.0.write32(at, P2VMAILBOX_TAKE_FROM_VF);
            once()
        }
    }
}

/// Where word `i` of a mailbox is.
fn word(vf: usize, i: usize) -> usize {
    MAILBOX_MEMORY.of(vf) + 4 * i
}
