//! The other side of the card's host bus: the behaviour of a root port, its link and its memory within
//! PCIe's rules, and checks of the card's behaviour (hw/docs/interfaces.md, "Host
//! bus: hif").
//!
//! Time is in picoseconds. The seed decides what PCIe leaves open (delays, splitting and order of
//! completions, stalls).
//!
//! | to memory | posted writes, in order, with delays by the seed, including interrupts |
//! | --- | --- |
//! | reads | after earlier writes; completions split at multiples of 64 B, in any order across tags |
//! | register accesses | in order; the completion follows the card's earlier writes |

mod downstream;
mod header;
mod link;
mod registers;
mod rules;
#[cfg(test)]
mod tests;
mod upstream;

use std::ops::RangeInclusive;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use pollux_card_model::Host;

use crate::pins::{Beat, CoreIn, CoreOut};
use downstream::Downstream;
use header::{Header, TAG};
use registers::Registers;
use rules::Rules;
use upstream::Upstream;

pub use link::{LINK_BYTES_PER_US, TLP_OVERHEAD};
pub use upstream::{NON_POSTED_HEADERS, POSTED_BYTES, POSTED_HEADERS};

/// Window of the MSI-X vectors (PCI 3.0 section 6.8.2).
const MSIX_BAR: u8 = 2;

/// Behaviour of the host within PCIe's rules. Times in picoseconds, drawn for each TLP.
#[derive(Clone, Debug)]
pub struct Behaviour {
    /// From the last beat of a write until it is in memory, besides its time on the link.
    pub write: RangeInclusive<u64>,
    /// From a read request until its first completion is at the card, besides that time.
    pub read: RangeInclusive<u64>,
    /// From a register access until it is at the card, and the same back.
    pub register: RangeInclusive<u64>,
    /// Bytes of TLPs that the host accepts from the card in a microsecond.
    pub upstream: u64,
    /// Of a hundred cycles, those in which nothing is accepted from the card despite free space.
    pub stall: u32,
    /// Completions are split wherever permitted, and arrive in any order across tags; else they have
    /// maximum length, in order.
    pub scattered: bool,
    /// Longest payload of a write and longest read, 128 B << n (PCIe 4.0, 7.5.3.4).
    pub max_payload: u8,
    /// Longest read request, likewise.
    pub max_read: u8,
}

impl Behaviour {
    /// Latency of a posted write from a device's hard block to memory, Gen3: the constant stated
    /// beside latencies. It is half of a read's round trip of 0.6 us, as measured on servers
    /// (Neugebauer et al., SIGCOMM 2018, figure 6).
    pub const WRITE_PS: u64 = 300_000;

    /// Constant, as fast as a server.
    #[must_use]
    pub fn prompt() -> Self {
        Self {
            write: Self::WRITE_PS..=Self::WRITE_PS,
            read: 2 * Self::WRITE_PS..=2 * Self::WRITE_PS,
            register: Self::WRITE_PS..=Self::WRITE_PS,
            upstream: LINK_BYTES_PER_US,
            stall: 0,
            scattered: false,
            max_payload: 1,
            max_read: 2,
        }
    }

    /// The worst permitted behaviour.
    #[must_use]
    pub fn adversarial() -> Self {
        Self {
            write: 50_000..=1_500_000,
            read: 300_000..=2_000_000,
            register: 50_000..=500_000,
            stall: 20,
            scattered: true,
            ..Self::prompt()
        }
    }
}

/// Traffic of the host bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Writes to memory.
    pub writes: u64,
    /// Bytes of them.
    pub write_bytes: u64,
    /// Bytes of all TLPs from the card, with what is around them.
    pub link_bytes: u64,
    /// Requests to read.
    pub reads: u64,
    /// Bytes that they requested.
    pub read_bytes: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Cycles in which a write was offered and not accepted.
    pub write_waits: u64,
    /// Time at which the card's last beat of the last write to memory was accepted, in picoseconds.
    pub last_write: u64,
}

/// Decisions of the seed.
struct Draw<'a> {
    rng: &'a mut Xoshiro256PlusPlus,
    behaviour: &'a Behaviour,
}

impl Draw<'_> {
    fn write(&mut self) -> u64 {
        self.rng.random_range(self.behaviour.write.clone())
    }

    fn read(&mut self) -> u64 {
        self.rng.random_range(self.behaviour.read.clone())
    }

    fn register(&mut self) -> u64 {
        self.rng.random_range(self.behaviour.register.clone())
    }

    /// Whether a transfer is possible in this cycle.
    fn takes(&mut self) -> bool {
        self.behaviour.stall == 0 || self.rng.random_range(0..100) >= self.behaviour.stall
    }

    /// Bytes of a completion that begins at `at`, of `left`.
    fn piece(&mut self, at: u64, left: u64, boundary: u64) -> u64 {
        let to_next = boundary - at % boundary;
        let longest = bytes(self.behaviour.max_payload) as u64;
        // Segments that end at a boundary and are not too long.
        let choices = 1 + (longest - to_next) / boundary;
        let chosen = if self.behaviour.scattered {
            self.rng.random_range(0..choices)
        } else {
            choices - 1
        };
        left.min(to_next + chosen * boundary)
    }

    /// The completion, of a number of them, that has the error.
    fn failing(&mut self, pieces: usize) -> usize {
        if self.behaviour.scattered {
            self.rng.random_range(0..pieces.max(1))
        } else {
            0
        }
    }

    /// The tag of the next completion, of tags in order of arrival.
    fn whose(&mut self, ripe: &[(u64, u64)]) -> Option<u64> {
        let chosen = if self.behaviour.scattered {
            ripe.get(self.rng.random_range(0..ripe.len().max(1)))
        } else {
            ripe.iter().min()
        };
        chosen.map(|&(_, tag)| tag)
    }
}

/// Sets or clears the bit of a function.
fn set(bits: &mut u8, function: u8, on: bool) {
    *bits = *bits & !(1 << function) | u8::from(on) << function;
}

/// Bytes for a limit of the configuration space.
fn bytes(limit: u8) -> usize {
    128 << limit
}

/// A root port with a card behind it.
pub(crate) struct RootPort {
    rng: Xoshiro256PlusPlus,
    behaviour: Behaviour,
    upstream: Upstream,
    downstream: Downstream,
    rules: Rules,
    traffic: Traffic,
    /// The card's inputs in this cycle.
    driven: CoreIn,
    registers: Registers,
    /// The function of register accesses and settings.
    function: u8,
    /// Register accesses so far.
    asked: u64,
}

impl RootPort {
    pub(crate) fn new(seed: u64, behaviour: Behaviour) -> Self {
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut port = Self {
            rng,
            behaviour: behaviour.clone(),
            upstream: Upstream::default(),
            downstream: Downstream::default(),
            rules: Rules::default(),
            traffic: Traffic::default(),
            driven: CoreIn::default(),
            registers: Registers::default(),
            function: 0,
            asked: 0,
        };
        port.set_behaviour(behaviour);
        port
    }

    pub(crate) fn set_behaviour(&mut self, behaviour: Behaviour) {
        (self.driven.max_payload, self.driven.max_read) =
            (behaviour.max_payload, behaviour.max_read);
        self.behaviour = behaviour;
    }

    /// The card's next inputs.
    pub(crate) fn pins(&self) -> &CoreIn {
        &self.driven
    }

    /// Violations of the card.
    pub(crate) fn violations(&self) -> &[String] {
        self.rules.all()
    }

    pub(crate) fn traffic(&self) -> Traffic {
        Traffic {
            link_bytes: self.upstream.link_bytes(),
            ..self.traffic
        }
    }

    /// An edge of `clk_core`: accepts the card's offers before it, and sets the card's inputs
    /// after it.
    pub(crate) fn edge(&mut self, now: u64, seen: &CoreOut, host: &mut dyn Host) {
        if self.driven.reset != 0 {
            return;
        }
        let ready = [
            self.driven.wr_req_ready,
            self.driven.rd_req_ready,
            self.driven.tx_cpl_ready,
        ];
        let [writes, reads, answers] = ready.map(|ready| ready != 0);
        self.rules.look(now, seen, [writes, reads, answers]);
        self.driven.flr &= !seen.flr_done;
        let mut draw = Draw {
            rng: &mut self.rng,
            behaviour: &self.behaviour,
        };

        if seen.wr_req.valid != 0 && writes {
            let longest = bytes(self.behaviour.max_payload);
            if seen.wr_req.sop != 0 {
                self.rules
                    .write(now, Header::from_words(seen.wr_req.header), longest);
            }
            self.upstream
                .write(now, &seen.wr_req, &mut draw, &mut self.traffic);
        }
        self.traffic.write_waits += u64::from(seen.wr_req.valid != 0 && !writes);
        if seen.rd_req.valid != 0 && reads {
            let header = Header::from_words(seen.rd_req.header);
            self.rules.read(now, header, bytes(self.behaviour.max_read));
            self.upstream
                .read(now, header, &mut draw, &mut self.traffic);
        }
        if seen.tx_cpl.valid != 0 && answers {
            self.upstream.answer(now, &seen.tx_cpl, &mut draw);
        }
        if let Some(tag) = self
            .downstream
            .edge(seen.rx_req_ready != 0, seen.rx_cpl_ready != 0)
        {
            self.rules.closed(tag);
        }

        for done in self.upstream.land(now, host, &mut self.traffic) {
            if !self.downstream.complete(now, &done, &mut draw) {
                self.rules.closed(done.header.get(TAG));
            }
        }
        while let Some(answer) = self.upstream.arrived(now) {
            if let Err(wrong) = self.registers.answered(&answer) {
                self.rules.broken(now, wrong);
            }
        }

        self.driven.wr_req_ready = (self.upstream.has_room(now) && draw.takes()).into();
        self.driven.rd_req_ready = (self.upstream.has_credit(now) && draw.takes()).into();
        self.driven.tx_cpl_ready = draw.takes().into();
        (self.driven.rx_req, self.driven.rx_cpl) = self.downstream.offer(now, &mut draw);
    }

    /// Writes of the card so far: accepted, and in memory.
    pub(crate) fn writes(&self) -> (u64, u64) {
        self.upstream.writes()
    }

    /// Register accesses that the card has not accepted yet.
    pub(crate) fn requests(&self) -> usize {
        self.downstream.requests()
    }

    /// Register accesses so far, and those that the card has accepted.
    pub(crate) fn accesses(&self) -> (u64, u64) {
        (self.asked, self.asked - self.requests() as u64)
    }

    /// Whether nothing is in flight, in either direction.
    pub(crate) fn is_idle(&self) -> bool {
        self.upstream.is_idle() && self.downstream.is_idle()
    }

    /// Writes a register of up to 4 bytes; with more, several.
    pub(crate) fn request_write(&mut self, now: u64, bar: u8, at: usize, bytes: &[u8]) {
        let tlp = Registers::write(self.function, bar, at, bytes);
        let mut draw = Draw {
            rng: &mut self.rng,
            behaviour: &self.behaviour,
        };
        self.downstream.request(now, tlp, &mut draw);
        self.asked += 1;
    }

    /// Requests a register.
    pub(crate) fn request_read(&mut self, now: u64, bar: u8, at: usize, len: usize) {
        let tlp = self.registers.read(self.function, bar, at, len);
        let mut draw = Draw {
            rng: &mut self.rng,
            behaviour: &self.behaviour,
        };
        self.downstream.request(now, tlp, &mut draw);
        self.asked += 1;
    }

    /// A completion of no read of the card.
    pub(crate) fn stray(&mut self, now: u64, tag: u16) {
        self.downstream.stray(now, tag.into());
    }

    /// The completion of the last read, once.
    pub(crate) fn take_answer(&mut self) -> Option<Vec<u8>> {
        self.registers.answer.take()
    }

    /// The last read had no completion in time.
    pub(crate) fn give_up(&mut self, now: u64, at: usize) {
        self.rules.broken(
            now,
            &format!("a read of the register at {at:#x} is not answered"),
        );
    }

    /// The function of what follows.
    pub(crate) fn act_as(&mut self, function: u8) {
        self.function = function;
    }

    pub(crate) fn set_bus_master(&mut self, on: bool) {
        set(&mut self.driven.bus_master, self.function, on);
    }

    /// Requests a function level reset; the card ends it.
    pub(crate) fn request_reset(&mut self) {
        set(&mut self.driven.flr, self.function, true);
    }

    /// Whether it has.
    pub(crate) fn is_reset(&self) -> bool {
        self.driven.flr >> self.function & 1 == 0
    }

    /// Enables MSI-X with so many vectors, or disables it. The caller has written the vectors before: here,
    /// interrupt n writes n.
    pub(crate) fn set_msix(&mut self, now: u64, vectors: u16) {
        for vector in 0..u32::from(vectors) {
            let at = upstream::INTERRUPTS;
            let entry = [at as u32, (at >> 32) as u32, vector, 0].map(u32::to_le_bytes);
            self.request_write(now, MSIX_BAR, 16 * vector as usize, entry.as_flattened());
        }
        set(&mut self.driven.msix_enable, self.function, vectors > 0);
    }

    /// Holds the card in reset, or releases it. Transfers in flight are lost.
    pub(crate) fn set_reset(&mut self, on: bool) {
        self.driven.reset = on.into();
        self.driven.flr = 0;
        (
            self.driven.wr_req_ready,
            self.driven.rd_req_ready,
            self.driven.tx_cpl_ready,
        ) = (0, 0, 0);
        (self.driven.rx_req, self.driven.rx_cpl) = (Beat::default(), Beat::default());
        self.upstream = Upstream::default();
        self.downstream = Downstream::default();
        self.registers = Registers::default();
        self.rules.reset();
    }
}
