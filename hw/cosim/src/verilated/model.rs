//! The Verilated card behind its shim (`shim/card.h`): clocks, pins, a waveform.

use std::ffi::CString;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use super::error::SimulatorError;
use crate::pins::{CoreIn, CoreOut, NetIn, NetOut, PORTS};

mod sys {
    use std::ffi::{c_char, c_int};

    use crate::pins::{CoreIn, CoreOut, NetIn, NetOut};

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
        pub(super) fn pollux_card_rx_free(card: *const Card, words: *mut u32);
        pub(super) fn pollux_card_tx_free(card: *const Card, words: *mut u32);
        pub(super) fn pollux_card_trace(card: *mut Card, file: *const c_char) -> c_int;
        pub(super) fn pollux_card_coverage(card: *mut Card, file: *const c_char) -> c_int;
    }
}

/// One model is made at a time: the simulator seeds the random numbers of one that is being made by a counter
/// of the process.
pub(super) static ONE: Mutex<()> = Mutex::new(());

/// A Verilated card. Its state changes only by [`eval`](Self::eval).
pub(crate) struct Model(NonNull<sys::Card>);

// SAFETY: a model shares nothing with another, and is of no thread: its context is its own, and the
// simulator makes that of the model the thread's at each call.
unsafe impl Send for Model {}

impl Model {
    /// A card in which everything without a reset has an initial value by the seed.
    pub(crate) fn new(seed: u64) -> Self {
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: takes any number; returns a new card with one owner.
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

    /// Evaluates the card, at a time in picoseconds.
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

    /// The observed signals of each port in this cycle ([`Probe`](super::Probe)).
    pub(crate) fn probe(&self) -> [u32; PORTS] {
        let mut probes = [0; PORTS];
        // SAFETY: the card is ours; the call sets as many numbers as there are.
        unsafe { sys::pollux_card_probe(self.0.as_ptr(), probes.as_mut_ptr()) };
        probes
    }

    /// Free words of 8 bytes in the receive fifo of each port.
    pub(crate) fn rx_free(&self) -> [u32; PORTS] {
        let mut words = [0; PORTS];
        // SAFETY: as above.
        unsafe { sys::pollux_card_rx_free(self.0.as_ptr(), words.as_mut_ptr()) };
        words
    }

    /// Free words of 32 bytes in the transmit fifo of each port.
    pub(crate) fn tx_free(&self) -> [u32; PORTS] {
        let mut words = [0; PORTS];
        // SAFETY: as above.
        unsafe { sys::pollux_card_tx_free(self.0.as_ptr(), words.as_mut_ptr()) };
        words
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

    /// Writes the lines that were reached.
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
