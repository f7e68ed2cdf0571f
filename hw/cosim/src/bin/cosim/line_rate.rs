//! Four ports at line rate, while buffers are returned as fast as they are announced, and the transmit
//! rings are refilled as fast as they empty.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use pollux_card_model::registers::port;
use pollux_card_model::{FrameEnd, SimulatedCard};
use pollux_cosim::CosimDevice;
use pollux_cosim::pcie::{
    Behaviour, LINK_BYTES_PER_US, NON_POSTED_HEADERS, POSTED_BYTES, POSTED_HEADERS, TLP_OVERHEAD,
};
use pollux_cosim::rig::{CATCH_ALL, Form, LOADS, Rig, datagram};
use pollux_cosim::verilated::VerilatedCard;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::{Value, json};

/// Time of each run at the wire, in picoseconds: long against what the fifos hold.
const WIRE_PS: u64 = 2_000_000_000;
/// Preamble, FCS and gap.
const AROUND: u64 = 8 + 4 + 12;
/// Time of a byte at 10 Gb/s.
const BYTE_PS: u64 = 800;
/// Headers of Ethernet, IPv4 and UDP.
const HEADERS: usize = 42;
/// Shortest and longest payload of random sizes: a frame of 64 B and an MTU of 1500.
const RANDOM: RangeInclusive<usize> = 18..=1472;
/// Time between two looks of the host.
const LOOK_PS: u64 = 4_000_000;
/// Time at the wire of the datagrams that are posted ahead, and the first ones.
const AHEAD_PS: u64 = 40 * LOOK_PS;
const FIRST: u32 = 512;
/// Of so many frames one is missing in a run that falls short.
const SPOILT: u64 = 50;

/// What the ports do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Rx,
    Tx,
    Both,
}

impl Direction {
    fn name(self) -> &'static str {
        match self {
            Self::Rx => "rx",
            Self::Tx => "tx",
            Self::Both => "both",
        }
    }
}

/// A run.
struct Case {
    direction: Direction,
    /// Bytes of the payloads; `None`: random ones.
    payload: Option<usize>,
    form: Form,
    /// Round trip of a read of memory, in picoseconds.
    read_ps: u64,
    /// One frame of `SPOILT` is bad, or not there to be sent.
    is_short: bool,
}

/// Runs with minimum frames; with `all` also those of other sizes, and a slower memory.
pub(crate) fn measure(all: bool) -> anyhow::Result<Value> {
    let mut cases = Vec::new();
    let sizes: &[_] = if all {
        &[Some(18), Some(1024), Some(8972), None]
    } else {
        &[Some(18)]
    };
    let times: &[u64] = if all {
        &[600_000, 1_000_000]
    } else {
        &[600_000]
    };
    for &read_ps in times {
        for &payload in sizes {
            for direction in [Direction::Rx, Direction::Tx, Direction::Both] {
                // Memory is read to send alone.
                if direction == Direction::Rx && read_ps != times[0] {
                    continue;
                }
                cases.push(Case {
                    direction,
                    payload,
                    form: Form::Payload,
                    read_ps,
                    is_short: false,
                });
            }
        }
    }
    cases.push(Case {
        direction: Direction::Rx,
        payload: Some(18),
        form: Form::Frame,
        read_ps: times[0],
        is_short: false,
    });
    // What a card that loses frames would look like.
    for direction in [Direction::Rx, Direction::Tx] {
        cases.push(Case {
            direction,
            payload: Some(18),
            form: Form::Payload,
            read_ps: times[0],
            is_short: true,
        });
    }
    let rows: Vec<_> = cases.iter().map(run).collect::<Result<_, _>>()?;
    Ok(json!({
        "line_rate": rows,
        "pcie": {
            "link_bytes_per_us": LINK_BYTES_PER_US,
            "tlp_overhead": TLP_OVERHEAD,
            "posted_headers": POSTED_HEADERS,
            "posted_bytes": POSTED_BYTES,
            "non_posted_headers": NON_POSTED_HEADERS,
            "write_ps": Behaviour::WRITE_PS,
        },
    }))
}

/// Bytes of payloads, one after the other.
struct Sizes {
    fixed: Option<usize>,
    rng: Xoshiro256PlusPlus,
}

impl Sizes {
    fn new(fixed: Option<usize>, seed: u64) -> Self {
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self { fixed, rng }
    }

    fn next(&mut self) -> usize {
        let rng = &mut self.rng;
        self.fixed.unwrap_or_else(|| rng.random_range(RANDOM))
    }
}

/// Time of a frame at the wire.
fn wire_ps(payload: usize) -> u64 {
    let frame = (payload + HEADERS).max(60) as u64;
    (frame + AROUND) * BYTE_PS
}

/// Datagrams that a port sends.
struct Sending {
    sizes: Sizes,
    /// Bytes of those that are posted and not seen at the wire.
    posted: VecDeque<usize>,
    count: u64,
    seen: u64,
    /// Time at the wire that those may take which are posted.
    allowed: u64,
    /// Start of the last frame of the first look, and the time at the wire of those after it.
    began: Option<u64>,
    took: u64,
    wrong: u64,
}

impl Sending {
    fn new(rig: &Rig<VerilatedCard>, which: usize, fixed: Option<usize>) -> Self {
        // Broadcast, which needs no ARP; from UDP port 4000 to 5000.
        let ports = u32::from_be_bytes([0x0f, 0xa0, 0x13, 0x88]);
        rig.write(&port::THIS, which, port::DESTINATION_IP, 0, u32::MAX);
        rig.write(&port::THIS, which, port::DESTINATION_PORTS, 0, ports);
        let longest = fixed.unwrap_or(*RANDOM.end());
        for place in 0..LOADS {
            rig.load(which, place, &vec![place as u8; longest]);
        }
        Self {
            sizes: Sizes::new(fixed, 100 + which as u64),
            posted: VecDeque::new(),
            count: 0,
            seen: 0,
            allowed: 0,
            began: None,
            took: 0,
            wrong: 0,
        }
    }

    /// Fills the ring, with no more than the wire takes in a time.
    fn fill(&mut self, rig: &mut Rig<VerilatedCard>, which: usize, most: u64) {
        let room = if self.count == 0 {
            FIRST
        } else {
            rig.ring_room(which)
        };
        let before = self.count;
        while self.count - before < room.into() && self.allowed < most {
            let len = self.sizes.next();
            rig.post(which, self.count as usize, len);
            self.posted.push_back(len);
            self.allowed += wire_ps(len);
            self.count += 1;
        }
        if self.count > before {
            rig.doorbell(which);
        }
    }

    /// Takes what is at the wire: each datagram in order, with its bytes.
    fn take(&mut self, rig: &Rig<VerilatedCard>, which: usize) {
        let before = self.seen;
        while let Some(frame) = rig.device.with(|card, _| card.take(which)) {
            let len = self.posted.pop_front();
            let place = (self.seen % LOADS as u64) as u8;
            let payload = len.and_then(|len| frame.bytes.get(HEADERS..HEADERS + len));
            let is_right = payload.is_some_and(|bytes| bytes.iter().all(|&byte| byte == place));
            self.wrong += u64::from(!is_right);
            self.took += len.map_or(0, wire_ps);
            self.seen += 1;
        }
        if self.began.is_none() && self.seen > before {
            self.began = Some(rig.device.with(|card, _| card.last_sent(which)));
            self.took = 0;
        }
    }

    /// Part of the wire's time that frames and their gaps took.
    fn rate(&self, rig: &Rig<VerilatedCard>, which: usize) -> f64 {
        let end = rig.device.with(|card, _| card.last_sent(which));
        let span = end - self.began.unwrap_or(end);
        self.took as f64 / span.max(1) as f64
    }
}

/// Frames to the ports: a run's time of them. One of `SPOILT` is bad where that is asked for.
fn offer(rig: &mut Rig<VerilatedCard>, case: &Case) -> u64 {
    let mut offered = 0;
    for which in 0..rig.ports() {
        let mut sizes = Sizes::new(case.payload, which as u64);
        let mut left = WIRE_PS;
        loop {
            let len = sizes.next();
            let Some(rest) = left.checked_sub(wire_ps(len)) else {
                break;
            };
            left = rest;
            offered += 1;
            let mut frame = datagram(which, 4000, 5000, &vec![0x5a; len]);
            if case.is_short && offered % SPOILT == 0 {
                frame.end = FrameEnd::BadFcs;
            }
            rig.put(which, frame);
        }
    }
    offered
}

/// A card whose ports receive what a case sends them.
fn receiver(case: &Case) -> anyhow::Result<Rig<VerilatedCard>> {
    let behaviour = Behaviour {
        read: case.read_ps..=case.read_ps,
        ..Behaviour::prompt()
    };
    let mut rig = Rig::new(CosimDevice::new(VerilatedCard::new(2, behaviour)))?;
    for which in 0..rig.ports() {
        let list = which as u16 * 32
            + if case.form == Form::Frame {
                CATCH_ALL
            } else {
                0
            };
        rig.add_list(list, 16 << 10, 1_000_000);
        if case.form == Form::Frame {
            rig.write(&port::THIS, which, port::NET_CTRL, 0, 0x37);
        } else {
            rig.add_stream(which, 0, 5000, case.form);
        }
        rig.enable(which);
    }
    rig.advance(5_000_000);
    Ok(rig)
}

fn run(case: &Case) -> anyhow::Result<Value> {
    let mut rig = receiver(case)?;
    let ports = rig.ports();
    let free = rig.device.with(|card, _| card.rx_free());
    let mut offered = 0;
    let mut sending = Vec::new();
    if case.direction != Direction::Tx {
        offered = offer(&mut rig, case);
    }
    if case.direction != Direction::Rx {
        sending.extend((0..ports).map(|which| Sending::new(&rig, which, case.payload)));
    }
    let (began, start) = rig.device.with(|card, _| (card.now(), card.traffic()));
    let (mut received, mut fifo_end) = (0, 0);
    loop {
        let since = rig.device.with(|card, _| card.now()) - began;
        let most = if case.is_short {
            since - since / SPOILT
        } else {
            since + AHEAD_PS
        };
        for (which, sending) in sending.iter_mut().enumerate() {
            sending.fill(&mut rig, which, most.max(1));
        }
        rig.advance(LOOK_PS);
        let words = rig.device.with(|card, _| card.rx_free());
        received += rig.receive().len() as u64;
        for (which, sending) in sending.iter_mut().enumerate() {
            sending.take(&rig, which);
        }
        let is_over = match case.direction {
            Direction::Tx => since >= WIRE_PS,
            _ => rig
                .device
                .with(|card, _| (0..ports).any(|which| card.coming(which) == 0)),
        };
        if is_over {
            break;
        }
        // While frames arrive: afterwards it empties.
        let level = free.iter().zip(words).map(|(free, words)| free - words);
        fifo_end = level.max().unwrap_or_default();
    }
    let busy = rig.device.with(|card, _| card.traffic());
    let rates = sending.iter().enumerate();
    let rates: Vec<_> = rates.map(|(which, port)| port.rate(&rig, which)).collect();
    let sent: u64 = sending.iter().map(|port| port.seen).sum();
    let wrong: u64 = sending.iter().map(|port| port.wrong).sum();
    rig.advance(10 * LOOK_PS);
    received += rig.flush().len() as u64;
    let counter = |register| {
        (0..ports)
            .map(|which| rig.read64(&port::THIS, which, register, 0))
            .sum::<u64>()
    };
    let broken = rig.device.with(|card, _| card.violations());
    anyhow::ensure!(
        broken.is_empty() && rig.wrong == 0,
        "the card breaks rules: {broken:?}"
    );
    anyhow::ensure!(wrong == 0, "{wrong} sent frames have other bytes");
    let arrived = counter(port::RX_FRAMES);
    anyhow::ensure!(arrived == offered, "{arrived} of {offered} frames arrived");
    // What each port would have sent at line rate, in the time in which it sent what it did.
    let fit = sending.iter().zip(&rates);
    let fit: f64 = fit.map(|(port, rate)| port.seen as f64 / rate).sum();
    let of_received = (case.direction != Direction::Tx).then(|| received as f64 / offered as f64);
    let rate = rates.into_iter().chain(of_received).fold(1.0, f64::min);
    let ns = rig.device.with(|card, _| card.now() - began) / 1000;
    Ok(json!({
        "direction": case.direction.name(),
        "frame": case.payload.map(|payload| (payload + HEADERS).max(60) + 4),
        "payload": case.payload,
        "whole_frames": case.form == Form::Frame,
        "read_ns": case.read_ps / 1000,
        "ports": ports,
        "ns": ns,
        "offered": offered + fit.round() as u64,
        "received": received + sent,
        "dropped": counter(port::DROP_OVERFLOW),
        "fifo_end": fifo_end,
        // Of the port that falls short most.
        "rate": rate,
        "is_short": case.is_short,
        "write_bytes": busy.write_bytes - start.write_bytes,
        "write_waits": busy.write_waits - start.write_waits,
    }))
}
