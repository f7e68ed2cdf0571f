//! The Verilated card behind its shim (`shim/card.h`): pins, clocks, a waveform.

use std::ffi::CString;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use super::SimulatorError;

/// Ports of the card.
pub(crate) const PORTS: usize = 4;

/// One cycle of a stream of the host bus, without `ready`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Beat {
    /// With `sop`.
    pub(crate) header: [u32; 4],
    /// The first DW of the TLP comes first.
    pub(crate) data: [u32; 8],
    pub(crate) valid: u8,
    pub(crate) sop: u8,
    pub(crate) eop: u8,
    unused: u8,
}

impl Beat {
    /// A beat of a TLP.
    pub(crate) fn new(header: [u32; 4], data: [u32; 8], sop: bool, eop: bool) -> Self {
        let (sop, eop) = (sop.into(), eop.into());
        Self {
            header,
            data,
            valid: 1,
            sop,
            eop,
            unused: 0,
        }
    }
}

/// Into the card, on `clk_core`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct CoreIn {
    pub(crate) rx_cpl: Beat,
    pub(crate) rx_req: Beat,
    pub(crate) wr_req_ready: u8,
    pub(crate) rd_req_ready: u8,
    pub(crate) tx_cpl_ready: u8,
    pub(crate) max_payload: u8,
    pub(crate) max_read: u8,
    pub(crate) bus_master: u8,
    pub(crate) msix_enable: u8,
    pub(crate) msix_mask: u8,
    pub(crate) reset: u8,
    unused: [u8; 3],
}

/// Out of the card, on `clk_core`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct CoreOut {
    pub(crate) wr_req: Beat,
    pub(crate) rd_req: Beat,
    pub(crate) tx_cpl: Beat,
    pub(crate) rx_cpl_ready: u8,
    pub(crate) rx_req_ready: u8,
    unused: [u8; 2],
}

/// Into the card, on `clk_net`; the timing inputs belong to no clock.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct NetIn {
    pub(crate) data: [u64; PORTS],
    pub(crate) control: [u8; PORTS],
    pub(crate) ttc_clock: u8,
    pub(crate) ttc_start: u8,
    pub(crate) ttc_end: u8,
    pub(crate) ttc_trigger: u8,
    pub(crate) reset: u8,
    unused: [u8; 7],
}

/// Out of the card, on `clk_net`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct NetOut {
    pub(crate) data: [u64; PORTS],
    pub(crate) control: [u8; PORTS],
    unused: [u8; 4],
}

// The structures have no padding, so that C sees the same.
const _: () = {
    assert!(size_of::<Beat>() == 52 && align_of::<Beat>() == 4);
    assert!(size_of::<CoreIn>() == 2 * 52 + 12);
    assert!(size_of::<CoreOut>() == 3 * 52 + 4);
    assert!(size_of::<NetIn>() == 9 * PORTS + 12);
    assert!(size_of::<NetOut>() == 9 * PORTS + 4);
};

mod sys {
    use std::ffi::{c_char, c_int};

    use super::{CoreIn, CoreOut, NetIn, NetOut};

    #[repr(C)]
    pub(super) struct Card {
        private: [u8; 0],
    }

    unsafe extern "C" {
        pub(super) fn pollux_card_new(seed: u32) -> *mut Card;
        pub(super) fn pollux_card_free(card: *mut Card);
        pub(super) fn pollux_card_core_in(card: *mut Card, pins: *const CoreIn);
        pub(super) fn pollux_card_net_in(card: *mut Card, pins: *const NetIn);
        pub(super) fn pollux_card_clk_core(card: *mut Card, level: c_int);
        pub(super) fn pollux_card_clk_net(card: *mut Card, level: c_int);
        pub(super) fn pollux_card_eval(card: *mut Card, ps: u64);
        pub(super) fn pollux_card_core_out(card: *const Card, pins: *mut CoreOut);
        pub(super) fn pollux_card_net_out(card: *const Card, pins: *mut NetOut);
        pub(super) fn pollux_card_probe(card: *const Card, probes: *mut u32);
        pub(super) fn pollux_card_trace(card: *mut Card, file: *const c_char) -> c_int;
        pub(super) fn pollux_card_coverage(card: *mut Card, file: *const c_char) -> c_int;
    }
}

/// A Verilated card. Nothing happens in it but by [`eval`](Self::eval).
pub(crate) struct Model(NonNull<sys::Card>);

// SAFETY: a model shares nothing with another, and is of no thread: its context is its own, and the
// simulator makes that of the model the thread's at each call.
unsafe impl Send for Model {}

impl Model {
    /// A card in which everything that has no reset begins as the seed says.
    pub(crate) fn new(seed: u64) -> Self {
        // One at a time: the simulator seeds the random numbers of a card that is being made by a
        // counter of the process.
        static ONE: Mutex<()> = Mutex::new(());
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: takes any number; returns a new card, which nobody else has.
        let made = unsafe { sys::pollux_card_new((seed ^ seed >> 32) as u32) };
        match NonNull::new(made) {
            Some(card) => Self(card),
            // C++ throws before it returns that, and is then at its end.
            None => std::process::abort(),
        }
    }

    pub(crate) fn drive_core(&mut self, pins: &CoreIn) {
        // SAFETY: the card is ours; the pins are borrowed for the call, which copies them.
        unsafe { sys::pollux_card_core_in(self.0.as_ptr(), pins) }
    }

    pub(crate) fn drive_net(&mut self, pins: &NetIn) {
        // SAFETY: as above.
        unsafe { sys::pollux_card_net_in(self.0.as_ptr(), pins) }
    }

    pub(crate) fn set_clk_core(&mut self, level: bool) {
        // SAFETY: the card is ours.
        unsafe { sys::pollux_card_clk_core(self.0.as_ptr(), level.into()) }
    }

    pub(crate) fn set_clk_net(&mut self, level: bool) {
        // SAFETY: the card is ours.
        unsafe { sys::pollux_card_clk_net(self.0.as_ptr(), level.into()) }
    }

    /// Settles the card, at a time in picoseconds.
    pub(crate) fn eval(&mut self, ps: u64) {
        // SAFETY: the card is ours.
        unsafe { sys::pollux_card_eval(self.0.as_ptr(), ps) }
    }

    pub(crate) fn core(&self) -> CoreOut {
        let mut pins = CoreOut::default();
        // SAFETY: the card is ours; all fields of the pins are numbers, of which the call sets some.
        unsafe { sys::pollux_card_core_out(self.0.as_ptr(), &raw mut pins) };
        pins
    }

    pub(crate) fn net(&self) -> NetOut {
        let mut pins = NetOut::default();
        // SAFETY: as above.
        unsafe { sys::pollux_card_net_out(self.0.as_ptr(), &raw mut pins) };
        pins
    }

    /// What each port does in this cycle ([`Probe`](super::Probe)).
    pub(crate) fn probe(&self) -> [u32; PORTS] {
        let mut probes = [0; PORTS];
        // SAFETY: the card is ours; the call sets as many numbers as there are.
        unsafe { sys::pollux_card_probe(self.0.as_ptr(), probes.as_mut_ptr()) };
        probes
    }

    /// Writes a waveform from now on.
    pub(crate) fn trace(&mut self, file: &Path) -> Result<(), SimulatorError> {
        let name = c_path(file)?;
        // SAFETY: the card is ours; the name is borrowed for the call, and ends with a zero.
        match unsafe { sys::pollux_card_trace(self.0.as_ptr(), name.as_ptr()) } {
            0 => Err(SimulatorError::NoTrace(file.into())),
            _ => Ok(()),
        }
    }

    /// Writes which lines were reached.
    pub(crate) fn write_coverage(&mut self, file: &Path) -> Result<(), SimulatorError> {
        let name = c_path(file)?;
        // SAFETY: as above.
        match unsafe { sys::pollux_card_coverage(self.0.as_ptr(), name.as_ptr()) } {
            0 => Err(SimulatorError::NoCoverage),
            _ => Ok(()),
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: the card is ours, and this is its last use.
        unsafe { sys::pollux_card_free(self.0.as_ptr()) }
    }
}

fn c_path(file: &Path) -> Result<CString, SimulatorError> {
    CString::new(file.as_os_str().as_encoded_bytes())
        .map_err(|_| SimulatorError::NoTrace(file.into()))
}
