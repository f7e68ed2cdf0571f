//! The Verilated `plx_evb_ring` behind its shim (`shim/ring.h`): one call is one cycle.

use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

/// Feeders of the simulated ring.
pub(crate) const FEEDERS: usize = 8;
/// Events in flight.
pub(crate) const SLOTS: usize = 64;

/// Operations and state of the scheduler in a cycle.
pub(crate) mod bits {
    pub(crate) const TRIGGER: u32 = 1 << 0;
    pub(crate) const CHANGE: u32 = 1 << 1;
    pub(crate) const COMMAND: u32 = 1 << 2;
    pub(crate) const DECIDE: u32 = 1 << 3;
    pub(crate) const FLOW: u32 = 1 << 4;
    pub(crate) const FEEDBACK: u32 = 1 << 5;
    pub(crate) const EXPIRE: u32 = 1 << 6;
    pub(crate) const RELEASE: u32 = 1 << 7;
    /// All of them.
    pub(crate) const OPERATIONS: u32 = 0xff;
    pub(crate) const READY: u32 = 1 << 8;
    pub(crate) const BUSY: u32 = 1 << 9;
    pub(crate) const QUIET: u32 = 1 << 10;
    pub(crate) const WRITTEN: u32 = 1 << 11;
    pub(crate) const ANSWER: u32 = 1 << 12;
}

/// Inputs of a cycle.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct In {
    pub(crate) decided: u64,
    pub(crate) address: u64,
    pub(crate) feedback: [u32; 4],
    pub(crate) write_data: u32,
    pub(crate) register_address: u16,
    pub(crate) slot: u16,
    pub(crate) bypass_above: u16,
    pub(crate) descriptor: u16,
    pub(crate) store_bytes: [u16; FEEDERS],
    pub(crate) fault_bit: u16,
    pub(crate) fault_lose: u16,
    pub(crate) fault_flip: u16,
    pub(crate) store_valid: u8,
    pub(crate) done: u8,
    pub(crate) reset: u8,
    pub(crate) trigger: u8,
    pub(crate) feedback_valid: u8,
    pub(crate) decided_valid: u8,
    pub(crate) table_valid: u8,
    pub(crate) write: u8,
    pub(crate) read: u8,
    pub(crate) unused: u8,
}

/// A transfer that a feeder offers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) address: u64,
    pub(crate) number: u32,
    pub(crate) bytes: u32,
    pub(crate) descriptor: u16,
    pub(crate) absent: u8,
    pub(crate) oversize: u8,
    pub(crate) unused: u32,
}

/// What happens in a cycle.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Out {
    pub(crate) transfer: [Offer; FEEDERS],
    pub(crate) flow: [[u32; 8]; FEEDERS + 1],
    pub(crate) scheduler: u32,
    pub(crate) read_data: u32,
    pub(crate) sent: u16,
    pub(crate) offered: u16,
    pub(crate) takes: u8,
    pub(crate) stores: u8,
    pub(crate) ends: u8,
    pub(crate) transfers: u8,
}

mod sys {
    use super::{In, Out};

    #[repr(C)]
    pub(super) struct Ring {
        private: [u8; 0],
    }

    unsafe extern "C" {
        pub(super) fn pollux_ring_new(seed: u32) -> *mut Ring;
        pub(super) fn pollux_ring_free(ring: *mut Ring);
        pub(super) fn pollux_ring_cycle(ring: *mut Ring, inputs: *const In, outputs: *mut Out);
    }
}

/// A Verilated ring.
pub(crate) struct Model(NonNull<sys::Ring>);

impl Model {
    /// A ring in which everything without a reset has an initial value by the seed.
    pub(crate) fn new(seed: u64) -> Self {
        // One at a time: as of the card's model.
        static ONE: Mutex<()> = Mutex::new(());
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: takes any number; returns a new ring with one owner.
        let made = unsafe { sys::pollux_ring_new((seed ^ seed >> 32) as u32) };
        match NonNull::new(made) {
            Some(ring) => Self(ring),
            // C++ throws before it returns that, and is then at its end.
            None => std::process::abort(),
        }
    }

    /// One cycle.
    pub(crate) fn cycle(&mut self, inputs: &In, outputs: &mut Out) {
        // SAFETY: the ring is ours; both structures are borrowed for the call, which reads the one and
        // sets fields of the other, all of them numbers.
        unsafe { sys::pollux_ring_cycle(self.0.as_ptr(), inputs, outputs) }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: the ring is ours, and this is its last use.
        unsafe { sys::pollux_ring_free(self.0.as_ptr()) }
    }
}
