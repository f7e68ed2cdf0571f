//! Mailboxes and resets of virtual functions (section 8.14).

use pollux_pmd::drivers::igb::registers::*;

use super::Chip;
use super::offsets::mailbox::*;
use super::offsets::{V2PMAILBOX, VTIVAR_MISC, queue};

impl Chip {
    /// The physical function writes its control of a mailbox.
    pub(super) fn pf_mailbox(&mut self, vf: usize, value: u32) {
        let (own, other) = (P2VMAILBOX.of(vf), V2PMAILBOX + 4 * vf);
        if value & P2VMAILBOX_TAKE_FROM_VF != 0 {
            self.set_bits(own, P2VMAILBOX_VF_HAS_BUFFER, false);
            self.set_bits(other, VF_HAS_BUFFER, false);
        }
        let takes = value & P2VMAILBOX_PF_HAS_BUFFER != 0;
        let has = takes && !self.has(own, P2VMAILBOX_VF_HAS_BUFFER);
        self.set_bits(own, P2VMAILBOX_PF_HAS_BUFFER, has);
        self.set_bits(other, PF_HAS_BUFFER, has);
        let news = [
            (P2VMAILBOX_SENT, PF_SENT),
            (P2VMAILBOX_ACKNOWLEDGE, PF_ACKNOWLEDGED),
        ];
        for (bit, seen) in news {
            if value & bit != 0 {
                self.set_bits(other, seen, true);
                let entry = self.get(VTIVAR_MISC + 4 * vf);
                if entry & 0x80 != 0 {
                    self.signal(vf, entry & 3);
                }
            }
        }
    }

    /// A virtual function writes its own.
    pub(super) fn vf_mailbox(&mut self, vf: usize, value: u32) {
        let (own, other) = (V2PMAILBOX + 4 * vf, P2VMAILBOX.of(vf));
        let takes = value & VF_HAS_BUFFER != 0;
        let has = takes && !self.has(own, PF_HAS_BUFFER);
        self.set_bits(own, VF_HAS_BUFFER, has);
        self.set_bits(other, P2VMAILBOX_VF_HAS_BUFFER, has);
        for (bit, shift) in [(SENT, 0), (ACKNOWLEDGED, 16)] {
            if value & bit != 0 {
                self.set_bits(MBVFICR.at, 1 << (vf + shift), true);
                self.raise(IMS_MAILBOX);
            }
        }
        if value & SENT != 0 {
            self.pretend_to_answer(vf);
        }
    }

    /// Mostly what is hoped for; else anything, or nothing.
    fn pretend_to_answer(&mut self, vf: usize) {
        let Some(choices) = &mut self.pretended else {
            return;
        };
        let (kind, anything) = (choices.below(8), choices.number() as u32);
        let words = [anything, choices.number() as u32];
        let at = MAILBOX_MEMORY.of(vf);
        let asked = self.get(at);
        let first = match kind {
            0 => anything,
            1 => asked | 1 << 30,
            _ => asked | 1 << 31 | 1 << 29,
        };
        self.set(at, first);
        self.set(at + 4, words[0] & !1 | 2);
        self.set(at + 8, words[1]);
        let news = PF_ACKNOWLEDGED | PF_SENT;
        self.set_bits(V2PMAILBOX + 4 * vf, news, true);
        for enables in [VFRE.at, VFTE.at] {
            self.set_bits(enables, 1 << vf, kind > 1);
        }
    }

    /// A virtual function is reset, by itself or from outside.
    pub(super) fn reset_vf(&mut self, vf: usize) {
        for queue in [vf, vf + 8] {
            self.set(RX.of(queue) + queue::CONTROL, 0);
            self.set(TX.of(queue) + queue::CONTROL, 0);
            if let Some(frames) = self.arrived.get_mut(queue) {
                frames.clear();
            }
        }
        self.set_bits(VFRE.at, 1 << vf, false);
        self.set_bits(VFTE.at, 1 << vf, false);
        self.set_bits(VFLRE.at, 1 << vf, true);
        self.raise(IMS_MAILBOX);
    }

    /// The physical function's driver is done with its reset.
    pub(super) fn reset_is_done(&mut self) {
        for vf in 0..8 {
            let at = V2PMAILBOX + 4 * vf;
            self.set_bits(at, PF_RESETS, false);
            self.set_bits(at, PF_RESET_DONE, true);
        }
    }
}
