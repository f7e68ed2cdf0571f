//! The RTL of the card, by Verilator: in this process, in lock step with its caller, and the same in
//! every run with the same seed.
//!
//! | | |
//! | --- | --- |
//! | `model` | the pins, behind the C shim |
//! | `start` | cards after power-on, and what is at their wires |
//! | `clocks` | 250 and 156.25 MHz in integer picoseconds; their phase is the seed's; clocks of far ends |
//! | `lane`, `lanes` | the PCS of each port and of its partner, where asked for |
//! | `wire` | frames to XGMII and back |
//! | `watch` | latencies in cycles |
//! | [`pcie`](crate::pcie) | the host bus |

mod clocks;
mod error;
mod lane;
mod lanes;
pub(crate) mod model;
mod pulses;
mod start;
mod watch;
mod wire;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use pollux_card_model::{FUNCTIONS, Host, LinkSignal, SimulatedCard, TimingInput, WireFrame};

use crate::pcie::{Behaviour, RootPort, Traffic};
use crate::pins::{NetIn, NetOut, PORTS};
use clocks::{Clocks, Edge};
use lanes::Lanes;
use model::Model;
use pulses::Pulses;
use wire::{Receiver, Sender};

pub use error::SimulatorError;
pub use lanes::{PcsState, Wires};
pub use watch::{Probe, Watch};

/// The file of a waveform, if set: `POLLUX_TRACE=card.fst`. The first card that is
/// made writes it.
pub const TRACE: &str = "POLLUX_TRACE";

/// A folder where each card writes at its end the lines of the RTL that it has reached, if
/// set: `POLLUX_COVERAGE=folder`.
pub const COVERAGE: &str = "POLLUX_COVERAGE";

/// Cycles of `clk_core` of a reset.
const RESET_CYCLES: u64 = 16;
/// Longest that a register read may take, in picoseconds.
const ANSWER_PS: u64 = 200_000_000;
/// Register writes that may be in flight to the card.
const POSTED_REQUESTS: usize = 16;
/// Maximum time of an access from the host bus to its register, across clocks.
const ACCESS_PS: u64 = 400_000;

/// A frame that was queued behind register accesses: it arrives when those have been done.
struct Held {
    accesses: u64,
    port: usize,
    frame: WireFrame,
    from: Option<u64>,
}

/// The card from its RTL.
pub struct VerilatedCard {
    model: Model,
    clocks: Clocks,
    now: u64,
    port: RootPort,
    net: NetIn,
    senders: [Sender; PORTS],
    receivers: [Receiver; PORTS],
    held: VecDeque<Held>,
    pulses: Pulses,
    core_cycles: u64,
    watch: Option<Watch>,
    lanes: Option<Lanes>,
    /// When the ports' clock stops.
    stops_at: Option<u64>,
    /// The function that acts.
    function: u8,
}

impl VerilatedCard {
    /// The ports' clock stands, or runs on.
    pub fn run_net(&mut self, runs: bool) {
        self.clocks.run_net(self.now, runs);
    }

    /// The ports' clock stops after some picoseconds.
    pub fn stop_net_after(&mut self, ps: u64) {
        self.stops_at = Some(self.now + ps);
    }

    /// The reset of the ports from outside begins or ends, with or without their clock.
    pub fn hold_net(&mut self, reset: bool) {
        self.net.reset = reset.into();
        self.model.drive_net(&self.net);
        if let Some(lanes) = &mut self.lanes {
            lanes.set_reset(reset, false);
        }
    }

    /// The PCS of a port, if it has one.
    #[must_use]
    pub fn pcs(&self, port: usize) -> Option<PcsState> {
        let lanes = self.lanes.as_ref().filter(|_| port < PORTS)?;
        Some(lanes.state(port))
    }

    /// Writes a waveform from now on.
    ///
    /// # Errors
    /// [`SimulatorError::NoTrace`].
    pub fn trace(&mut self, file: &Path) -> Result<(), SimulatorError> {
        self.model.trace(file)
    }

    /// The card's first violation of the rules of the host bus and of XGMII. Empty if there is
    /// none.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        let wrong: u64 = self.receivers.iter().map(|receiver| receiver.wrong).sum();
        let wires = (wrong > 0).then(|| format!("{wrong} characters on the wires out of place"));
        self.port
            .violations()
            .iter()
            .cloned()
            .chain(wires)
            .collect()
    }

    /// Traffic of the host bus.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.port.traffic()
    }

    /// Sets the behaviour of the host.
    pub fn set_behaviour(&mut self, behaviour: Behaviour) {
        self.port.set_behaviour(behaviour);
    }

    /// Cycles of `clk_core` so far.
    #[must_use]
    pub fn core_cycles(&self) -> u64 {
        self.core_cycles
    }

    /// Free words of 8 bytes in the receive fifo of each port.
    #[must_use]
    pub fn rx_free(&self) -> [u32; PORTS] {
        self.model.rx_free()
    }

    /// Free words of 32 bytes in the transmit fifo of each port.
    #[must_use]
    pub fn tx_free(&self) -> [u32; PORTS] {
        self.model.tx_free()
    }

    /// Starts a new observation of the ports.
    pub fn watch(&mut self) {
        self.watch = Some(Watch::default());
    }

    /// Observations since then.
    pub fn watched(&mut self) -> Watch {
        self.watch.take().unwrap_or_default()
    }

    /// Reads some bytes of registers by one request, as a wide load of a core does: up to 64,
    /// in memory order. Bytes without a register read as ones.
    pub fn read_bytes(&mut self, host: &mut dyn Host, bar: u8, at: usize, len: usize) -> Vec<u8> {
        self.request_read(bar, at, len);
        let end = self.now + ANSWER_PS;
        while self.now < end {
            self.step(host);
            if let Some(bytes) = self.take_answer() {
                return bytes;
            }
        }
        self.port.give_up(self.now, at);
        vec![0xff; len]
    }

    /// Requests the same, and does not wait: another core of the host may access registers meanwhile. One at a
    /// time.
    pub fn request_read(&mut self, bar: u8, at: usize, len: usize) {
        self.port.request_read(self.now, bar, at, len);
    }

    /// What the last request has read, once, when the host has the completion.
    pub fn take_answer(&mut self) -> Option<Vec<u8>> {
        self.port.take_answer()
    }

    /// Writes some bytes of registers by one request, up to 64, as write combining does.
    pub fn write_bytes(&mut self, host: &mut dyn Host, bar: u8, at: usize, bytes: &[u8]) {
        // Flow control: a write waits for space, as it does on a bus.
        self.until(host, |card| card.port.requests() < POSTED_REQUESTS);
        self.port.request_write(self.now, bar, at, bytes);
    }

    /// When the last frame to a port began: its start character was at XGMII, or its block at the PCS, in
    /// picoseconds.
    #[must_use]
    pub fn last_start(&self, port: usize) -> u64 {
        let began = self.senders.get(port).map_or(0, |sender| sender.began);
        began + self.lanes.as_ref().map_or(0, |lanes| lanes.delay_ps(port))
    }

    /// The same of the last frame that a port has sent.
    #[must_use]
    pub fn last_sent(&self, port: usize) -> u64 {
        self.receivers
            .get(port)
            .map_or(0, |receiver| receiver.began)
    }

    /// The next edge of a clock.
    fn step(&mut self, host: &mut dyn Host) {
        if self.stops_at.is_some_and(|at| at <= self.clocks.at()) {
            self.stops_at = None;
            self.run_net(false);
        }
        let (now, edge) = self.clocks.step();
        self.now = now;
        match edge {
            Edge::Core { rises: true } => {
                let seen = self.model.core();
                if let Some(watch) = &mut self.watch {
                    watch.core_edge(self.model.probe(), seen.wr_req.valid != 0);
                }
                self.model.set_clk_core(true);
                self.model.eval(now);
                self.port.edge(now, &seen, host);
                self.model.drive_core(self.port.pins());
                self.core_cycles += 1;
            }
            Edge::Net { rises: true } => {
                let seen = self.model.net();
                if let Some(watch) = &mut self.watch {
                    watch.net_edge(self.model.probe());
                }
                self.model.set_clk_net(true);
                self.model.eval(now);
                self.wires(now, &seen);
                self.model.drive_net(&self.net);
            }
            // Inputs set after the rising edge settle here.
            Edge::Core { rises: false } => {
                self.model.set_clk_core(false);
                self.model.eval(now);
            }
            Edge::Net { rises: false } => {
                self.model.set_clk_net(false);
                self.model.eval(now);
                if let Some(lanes) = &mut self.lanes {
                    lanes.net_falls(now);
                }
            }
            Edge::Far { port, rises } => self.far_edge(now, port, rises),
        }
    }

    fn wires(&mut self, now: u64, seen: &NetOut) {
        let (_, taken) = self.port.accesses();
        while let Some(first) = self.held.front_mut().filter(|held| held.accesses <= taken) {
            if *first.from.get_or_insert(now + ACCESS_PS) > now {
                break;
            }
            if let Some(held) = self.held.pop_front() {
                self.senders[held.port].put(held.frame);
            }
        }
        self.pulses.drive(&mut self.net);
        if let Some(lanes) = &mut self.lanes {
            lanes.net_edge(now, seen, &mut self.net);
            return;
        }
        let words = seen.data.into_iter().zip(seen.control);
        for (receiver, word) in self.receivers.iter_mut().zip(words) {
            if self.net.reset == 0 {
                receiver.word(now, word);
            }
        }
        let pins = self.net.data.iter_mut().zip(&mut self.net.control);
        for (sender, (data, control)) in self.senders.iter_mut().zip(pins) {
            (*data, *control) = sender.word(now);
        }
    }

    /// An edge of the clock at the far end of a wire.
    fn far_edge(&mut self, now: u64, port: usize, rises: bool) {
        let Some(lanes) = &mut self.lanes else {
            return;
        };
        if !rises {
            return lanes.far_falls(now, port);
        }
        let word = lanes.far_edge(now, port, self.senders[port].word(now));
        // Until its reset a lane sends anything.
        if self.net.reset == 0 {
            self.receivers[port].word(now, word);
        }
    }

    /// Advances time until a condition holds, or until the timeout of a response.
    fn until(&mut self, host: &mut dyn Host, over: impl Fn(&Self) -> bool) {
        let end = self.now + ANSWER_PS;
        while !over(self) && self.now < end {
            self.step(host);
        }
    }

    fn pulse_reset(&mut self, host: &mut dyn Host) {
        self.port.set_reset(true);
        self.set_reset(true);
        self.advance(host, RESET_CYCLES * 4_000);
        self.port.set_reset(false);
        self.set_reset(false);
        self.advance(host, RESET_CYCLES * 4_000);
    }

    /// Of the ports, and of what is at the far ends of their wires.
    fn set_reset(&mut self, reset: bool) {
        self.net.reset = reset.into();
        self.model.drive_net(&self.net);
        if let Some(lanes) = &mut self.lanes {
            lanes.set_reset(reset, true);
        }
    }
}

impl SimulatedCard for VerilatedCard {
    fn act_as(&mut self, function: u8) {
        self.function = function;
        self.port.act_as(function);
    }

    fn read(&mut self, host: &mut dyn Host, bar: u8, at: usize, width: usize) -> u32 {
        let bytes = self.read_bytes(host, bar, at, width);
        let join = |value: u32, &byte: &u8| value << 8 | u32::from(byte);
        bytes.iter().rev().fold(0, join)
    }

    fn write(&mut self, host: &mut dyn Host, bar: u8, at: usize, width: usize, value: u32) {
        self.write_bytes(host, bar, at, &value.to_le_bytes()[..width.min(4)]);
    }

    fn advance(&mut self, host: &mut dyn Host, ps: u64) {
        let end = self.now + ps;
        while self.clocks.at() <= end {
            self.step(host);
        }
        self.now = end;
    }

    fn now(&self) -> u64 {
        self.now
    }

    fn set_bus_master(&mut self, host: &mut dyn Host, on: bool) {
        self.port.set_bus_master(on);
        // A configuration write has a completion, which follows the card's earlier writes.
        self.until(host, |card| on || card.port.is_idle());
    }

    fn set_msix(&mut self, host: &mut dyn Host, vectors: u16) {
        self.port.set_msix(self.now, vectors);
        self.until(host, |card| card.port.requests() == 0);
    }

    fn reset(&mut self, host: &mut dyn Host) {
        if self.function > 0 {
            self.port.set_bus_master(false);
            self.port.set_msix(self.now, 0);
            self.port.request_reset();
            self.until(host, |card| card.port.is_reset());
            // What it had written before is in memory when the host knows that it is reset.
            let (sent, _) = self.port.writes();
            return self.until(host, |card| card.port.writes().1 >= sent);
        }
        self.set_bus_master(host, false);
        self.port.set_msix(self.now, 0);
        for function in (0..FUNCTIONS as u8).rev() {
            self.port.act_as(function);
            self.port.set_bus_master(false);
            self.port.set_msix(self.now, 0);
        }
        self.pulse_reset(host);
    }

    fn put(&mut self, port: usize, frame: WireFrame) {
        let (accesses, taken) = self.port.accesses();
        let from = None;
        let held = Held {
            accesses,
            port,
            frame,
            from,
        };
        if port >= PORTS {
            return;
        }
        if accesses == taken && self.held.is_empty() {
            self.senders[port].put(held.frame);
        } else {
            self.held.push_back(held);
        }
    }

    fn coming(&self, port: usize) -> usize {
        let held = self.held.iter().filter(|held| held.port == port).count();
        held + self.senders.get(port).map_or(0, Sender::left)
    }

    fn take(&mut self, port: usize) -> Option<WireFrame> {
        self.receivers.get_mut(port).and_then(Receiver::take)
    }

    fn set_signal(&mut self, port: usize, signal: LinkSignal) {
        if let Some(sender) = self.senders.get_mut(port) {
            sender.set_signal(signal);
        }
    }

    fn pulse(&mut self, input: TimingInput) {
        self.pulses.queue.push_back(input);
    }

    fn send_stray_completion(&mut self, tag: u16) {
        self.port.stray(self.now, tag);
    }
}

impl Drop for VerilatedCard {
    fn drop(&mut self) {
        static CARDS: AtomicU64 = AtomicU64::new(0);
        let Some(folder) = std::env::var_os(COVERAGE) else {
            return;
        };
        let (process, card) = (std::process::id(), CARDS.fetch_add(1, Ordering::Relaxed));
        let file = Path::new(&folder).join(format!("{process}-{card}.dat"));
        if let Err(error) = self.model.write_coverage(&file) {
            eprintln!("{COVERAGE}: {error}");
        }
    }
}
