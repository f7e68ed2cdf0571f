//! Four ports at line rate, while buffers are returned as fast as they are announced, and the transmit
//! rings are refilled as fast as they empty.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use pollux_card_model::registers::port;
use pollux_card_model::{FrameEnd, SimulatedCard, WireFrame};
use pollux_cosim::CosimDevice;
use pollux_cosim::pcie::{
    Behaviour, LINK_BYTES_PER_US, NON_POSTED_HEADERS, POSTED_BYTES, POSTED_HEADERS, TLP_OVERHEAD,
    Traffic,
};
use pollux_cosim::rig::{DEFAULT_LIST, Form, LOADS, Rig, datagram};
use pollux_cosim::verilated::VerilatedCard;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::{Value, json};

/// Time of each run at the wire, in picoseconds: long against what the fifos hold. Half of it where they have to fill.
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
/// The part that is missing in a run that falls short, of frames or of time: 2 %.
const SPOILT: u64 = 50;
/// Time from one pause to the next, and its length in quanta of 51.2 ns: that part of the time.
const PAUSE_PS: u64 = 64_000_000;
const PAUSE_QUANTA: u16 = 25;
/// Register `MAC_CTRL` of a port that honours pauses: besides, it receives and sends.
const HONOURS_PAUSE: u32 = 1 << 5 | 0b11;

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

/// What makes a run fall short, so that it has to fail.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// One frame of `SPOILT` is bad, or not there to be sent: the rate is missed.
    Frames,
    /// The host accepts too little of the card, in bytes of TLPs in a microsecond: receive fifos fill, as those of a
    /// card that receives too slowly.
    Host(u64),
    /// The partners pause: transmit fifos do not empty in time, as those of a card that sends too slowly.
    Pauses,
}

impl Fault {
    fn name(self) -> &'static str {
        match self {
            Self::Frames => "frames",
            Self::Host(_) => "host",
            Self::Pauses => "pauses",
        }
    }
}

/// A run.
#[derive(Clone, Copy)]
struct Case {
    direction: Direction,
    /// Bytes of the payloads; `None`: random ones.
    payload: Option<usize>,
    form: Form,
    /// Round trip of a read of memory, in picoseconds.
    read_ps: u64,
    fault: Option<Fault>,
}

impl Case {
    /// Minimum frames, to streams, with a fast memory.
    const fn of(direction: Direction) -> Self {
        Self {
            direction,
            payload: Some(18),
            form: Form::Payload,
            read_ps: 600_000,
            fault: None,
        }
    }

    /// Time at the wire of all frames of a port, in one direction.
    fn wire_ps(&self) -> u64 {
        match self.fault {
            Some(Fault::Host(_) | Fault::Pauses) => WIRE_PS / 2,
            _ => WIRE_PS,
        }
    }

    /// Time in which a first frame is fetched, besides a look: all of it has to be there before it leaves.
    fn start_ps(&self) -> u64 {
        2 * wire_ps(self.payload.unwrap_or(*RANDOM.end()))
    }

    /// Time at the wire of the datagrams that may be posted, after some time.
    fn allowed(&self, since: u64) -> u64 {
        match self.fault {
            Some(Fault::Frames) => since - since / SPOILT,
            _ => since + AHEAD_PS,
        }
        .clamp(1, self.wire_ps())
    }
}

/// Runs with minimum frames; with `all` also those of other sizes, and a slower memory.
pub(crate) fn measure(all: bool) -> anyhow::Result<Value> {
    const DIRECTIONS: [Direction; 3] = [Direction::Rx, Direction::Tx, Direction::Both];
    let mut cases: Vec<_> = DIRECTIONS.map(Case::of).into();
    cases.push(Case {
        form: Form::Frame,
        ..Case::of(Direction::Rx)
    });
    if all {
        let sizes = [Some(18), Some(1024), Some(8972), None];
        for (read_ps, payload) in [600_000, 1_000_000]
            .into_iter()
            .flat_map(|ps| sizes.map(|size| (ps, size)))
        {
            // Memory is read to send alone.
            let is_new = |direction: &Direction| match read_ps {
                600_000 => payload != Some(18),
                _ => *direction != Direction::Rx,
            };
            cases.extend(DIRECTIONS.into_iter().filter(is_new).map(|direction| Case {
                payload,
                read_ps,
                ..Case::of(direction)
            }));
        }
    }
    // What a card that loses frames would look like; and one that sends too slowly.
    for (direction, fault) in [
        (Direction::Rx, Fault::Frames),
        (Direction::Tx, Fault::Frames),
        (Direction::Tx, Fault::Pauses),
    ] {
        cases.push(Case {
            fault: Some(fault),
            ..Case::of(direction)
        });
    }
    let mut rows: Vec<_> = cases.iter().map(run).collect::<Result<_, _>>()?;
    // One that receives too slowly.
    for (at, direction) in DIRECTIONS.into_iter().enumerate() {
        if direction != Direction::Tx {
            let needed = rows[at]["link_bytes_per_us"].as_u64().unwrap_or_default();
            let fault = Some(Fault::Host(needed - needed / SPOILT));
            rows.push(run(&Case {
                fault,
                ..Case::of(direction)
            })?);
        }
    }
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

/// A pause frame (IEEE 802.3, annex 31B).
fn pause() -> WireFrame {
    let mut frame = vec![1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 0x08, 0, 1];
    frame.extend(PAUSE_QUANTA.to_be_bytes());
    frame.resize(60, 0);
    WireFrame::good(frame)
}

/// Frames to the ports: a run's time of them. One of `SPOILT` is bad where that is asked for.
fn offer(rig: &mut Rig<VerilatedCard>, case: &Case) -> u64 {
    let mut offered = 0;
    for which in 0..rig.ports() {
        let mut sizes = Sizes::new(case.payload, which as u64);
        let mut left = case.wire_ps();
        loop {
            let len = sizes.next();
            let Some(rest) = left.checked_sub(wire_ps(len)) else {
                break;
            };
            left = rest;
            offered += 1;
            let mut frame = datagram(which, 4000, 5000, &vec![0x5a; len]);
            if case.fault == Some(Fault::Frames) && offered % SPOILT == 0 {
                frame.end = FrameEnd::BadFcs;
            }
            rig.put(which, frame);
        }
    }
    offered
}

/// A card whose ports receive what a case sends them.
fn receiver(case: &Case) -> anyhow::Result<Rig<VerilatedCard>> {
    let mut behaviour = Behaviour {
        read: case.read_ps..=case.read_ps,
        ..Behaviour::prompt()
    };
    if let Some(Fault::Host(bytes_per_us)) = case.fault {
        behaviour.upstream = bytes_per_us;
    }
    let mut rig = Rig::new(CosimDevice::new(VerilatedCard::new(2, behaviour)))?;
    for which in 0..rig.ports() {
        let list = which as u16 * 32
            + if case.form == Form::Frame {
                DEFAULT_LIST
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
        if case.fault == Some(Fault::Pauses) {
            rig.write(&port::THIS, which, port::MAC_CTRL, 0, HONOURS_PAUSE);
        }
    }
    rig.advance(5_000_000);
    Ok(rig)
}

/// What a run has seen at a look.
struct Look {
    now: u64,
    traffic: Traffic,
    /// Words in the fullest fifo.
    rx_words: u32,
    tx_words: u32,
}

/// Looks at a card whose fifos have that many free words when they are empty.
fn look(rig: &Rig<VerilatedCard>, empty: &[[u32; 4]; 2]) -> Look {
    let level = |empty: [u32; 4], free: [u32; 4]| {
        let levels = empty
            .iter()
            .zip(free)
            .map(|(empty, free)| empty.saturating_sub(free));
        levels.max().unwrap_or_default()
    };
    rig.device.with(|card, _| Look {
        now: card.now(),
        traffic: card.traffic(),
        rx_words: level(empty[0], card.rx_free()),
        tx_words: level(empty[1], card.tx_free()),
    })
}

/// Looks at a run: its first and its last one, and the last one at which all ports were at work.
struct Looks {
    first: Look,
    busy: Look,
    last: Look,
}

/// The ports at work, until the wire has had the time for all frames; and how many were received.
fn work(rig: &mut Rig<VerilatedCard>, case: &Case, sending: &mut [Sending]) -> (Looks, u64) {
    let ports = rig.ports();
    let empty = rig.device.with(|card, _| [card.rx_free(), card.tx_free()]);
    let first = look(rig, &empty);
    let (mut busy, mut received) = (look(rig, &empty), 0);
    let mut pauses = 0;
    loop {
        let since = rig.device.with(|card, _| card.now()) - first.now;
        for (which, sending) in sending.iter_mut().enumerate() {
            sending.fill(rig, which, case.allowed(since));
        }
        if case.fault == Some(Fault::Pauses) && since >= pauses * PAUSE_PS {
            (0..ports).for_each(|which| rig.put(which, pause()));
            pauses += 1;
        }
        rig.advance(LOOK_PS);
        let now = look(rig, &empty);
        received += rig.receive().len() as u64;
        for (which, sending) in sending.iter_mut().enumerate() {
            sending.take(rig, which);
        }
        let is_busy = rig.device.with(|card, _| match case.direction {
            Direction::Tx => since < case.wire_ps() - LOOK_PS,
            _ => (0..ports).all(|which| card.coming(which) > 0),
        });
        if since >= case.wire_ps() + case.start_ps() {
            return (
                Looks {
                    first,
                    busy,
                    last: now,
                },
                received,
            );
        }
        if is_busy {
            busy = now;
        }
    }
}

fn run(case: &Case) -> anyhow::Result<Value> {
    let mut rig = receiver(case)?;
    let ports = rig.ports();
    let mut offered = 0;
    let mut sending = Vec::new();
    if case.direction != Direction::Tx {
        offered = offer(&mut rig, case);
    }
    if case.direction != Direction::Rx {
        sending.extend((0..ports).map(|which| Sending::new(&rig, which, case.payload)));
    }
    let (looks, mut received) = work(&mut rig, case, &mut sending);
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
    let arrived = counter(port::RX_FRAMES) - counter(port::RX_PAUSE);
    anyhow::ensure!(arrived == offered, "{arrived} of {offered} frames arrived");
    // What each port would have sent at line rate, in the time in which it sent what it did.
    let fit = sending.iter().zip(&rates);
    let fit: f64 = fit.map(|(port, rate)| port.seen as f64 / rate).sum();
    let of_received = (case.direction != Direction::Tx).then(|| received as f64 / offered as f64);
    let rate = rates.into_iter().chain(of_received).fold(1.0, f64::min);
    let ns = rig.device.with(|card, _| card.now() - looks.first.now) / 1000;
    let (before, busy) = (looks.first.traffic, looks.busy.traffic);
    let link_bytes = busy.link_bytes - before.link_bytes;
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
        // While frames arrive; afterwards it empties.
        "fifo_end": looks.busy.rx_words,
        // When all frames could have left.
        "tx_fifo_end": looks.last.tx_words,
        // Of the port that falls short most.
        "rate": rate,
        "fault": case.fault.map(Fault::name),
        "write_bytes": busy.write_bytes - before.write_bytes,
        "write_waits": busy.write_waits - before.write_waits,
        "link_bytes_per_us": link_bytes * 1_000_000 / (looks.busy.now - looks.first.now),
    }))
}
