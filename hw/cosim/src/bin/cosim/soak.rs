//! Random traffic on all ports at line rate, an adversarial host, and every payload compared with the
//! sent one: received payloads equal the sent ones, in order, and all others are counted.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context;
use pollux_card_model::registers::port;
use pollux_card_model::{FrameEnd, Register, SimulatedCard, WireFrame};
use pollux_cosim::pcie::Behaviour;
use pollux_cosim::rig::{Form, Payload, Rig, datagram};
use pollux_cosim::verilated::VerilatedCard;
use pollux_cosim::{CosimDevice, HostMemory};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::{Value, json};

/// Frames to each port of a card.
const FRAMES: usize = 150;
/// Of `MAC_STATUS`: no received frame is between MAC and host bus.
const RX_IDLE: u32 = 1 << 3;
/// Counters of frames that ended before their list.
const LOST: [Register; 10] = [
    port::RX_FCS,
    port::RX_SYMBOL,
    port::RX_RUNT,
    port::RX_OVERSIZE,
    port::DROP_ADDRESS,
    port::DROP_MALFORMED,
    port::DROP_CHECKSUM,
    port::DROP_UNSUPPORTED,
    port::DROP_MISS,
    port::DROP_OVERFLOW,
];

/// Streams of each port that have a list; one more has none.
const STREAMS: u16 = 3;

/// Soaks cards with one seed after the other.
pub(crate) fn run(seconds: f64, seed: u64) -> anyhow::Result<Value> {
    let end = Instant::now() + Duration::try_from_secs_f64(seconds)?;
    let mut totals = Totals::default();
    let mut next = seed;
    loop {
        one_card(next, &mut totals).with_context(|| format!("seed {next}"))?;
        next += 1;
        if Instant::now() >= end {
            break;
        }
    }
    Ok(json!({
        "seeds": next - seed,
        "simulated_us": totals.ps / 1_000_000,
        "frames": totals.frames,
        "delivered": totals.delivered,
        "dropped": totals.dropped,
        "bytes": totals.bytes,
    }))
}

/// Totals of all cards.
#[derive(Default)]
struct Totals {
    frames: u64,
    delivered: u64,
    dropped: u64,
    bytes: u64,
    ps: u64,
}

fn one_card(seed: u64, totals: &mut Totals) -> anyhow::Result<()> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut trial = Trial::new(seed, &mut rng)?;
    totals.bytes += trial.send(&mut rng);
    while trial.coming() {
        trial.rig.advance(rng.random_range(500_000..8_000_000));
        trial.receive()?;
    }
    trial.rest()?;
    trial.judge(totals)
}

/// A card, the payloads sent to each of its lists, and the number found again.
struct Trial {
    rig: Rig<VerilatedCard>,
    sent: BTreeMap<u16, Vec<Vec<u8>>>,
    seen: BTreeMap<u16, usize>,
    delivered: u64,
}

impl Trial {
    fn new(seed: u64, rng: &mut Xoshiro256PlusPlus) -> anyhow::Result<Self> {
        let behaviour = match seed % 3 {
            0 => Behaviour::prompt(),
            1 => Behaviour::adversarial(),
            // So slow that the fifos overflow.
            _ => Behaviour {
                stall: 93,
                ..Behaviour::adversarial()
            },
        };
        let mut rig = Rig::new(CosimDevice::new(VerilatedCard::new(seed, behaviour)))?;
        for which in 0..rig.ports() {
            for stream in 0..STREAMS {
                let timeout = rng.random_range(500..20_000);
                let size = 64 * rng.random_range(24..200);
                rig.add_list(which as u16 * 32 + stream, size, timeout);
                rig.add_stream(which, stream.into(), 5000 + stream, Form::Payload);
            }
            rig.enable(which);
        }
        let (sent, seen) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self {
            rig,
            sent,
            seen,
            delivered: 0,
        })
    }

    /// Puts frames on all wires; returns the number of bytes.
    fn send(&mut self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        let mut bytes = 0;
        for which in 0..self.rig.ports() {
            for _ in 0..FRAMES {
                let (frame, stream, payload) = random_frame(which, rng);
                if frame.end == FrameEnd::Good && stream < STREAMS {
                    let list = which as u16 * 32 + stream;
                    self.sent.entry(list).or_default().push(payload);
                }
                bytes += frame.bytes.len() as u64;
                self.rig.put(which, frame);
            }
        }
        bytes
    }

    fn coming(&self) -> bool {
        let ports = 0..self.rig.ports();
        let coming = |card: &VerilatedCard| ports.clone().any(|which| card.coming(which) > 0);
        self.rig.device.with(|card, _| coming(card))
    }

    fn receive(&mut self) -> anyhow::Result<()> {
        let found = self.rig.receive();
        self.compare(found)
    }

    /// Each payload is one that was sent, after the last one found.
    fn compare(&mut self, found: Vec<Payload>) -> anyhow::Result<()> {
        for payload in found {
            let sent = self.sent.get(&payload.list).map(Vec::as_slice);
            let seen = self.seen.entry(payload.list).or_default();
            let rest = sent.unwrap_or_default().iter().skip(*seen);
            let skipped = rest.into_iter().position(|sent| *sent == payload.bytes);
            let Some(skipped) = skipped else {
                let list = payload.list;
                anyhow::bail!("list {list}: a payload that was not sent, or out of order");
            };
            *seen += skipped + 1;
            self.delivered += 1;
        }
        Ok(())
    }

    /// Waits until all received frames are in lists, and reads them.
    fn rest(&mut self) -> anyhow::Result<()> {
        for _ in 0..2000 {
            let status = |which| self.rig.read(&port::THIS, which, port::MAC_STATUS, 0);
            if (0..self.rig.ports()).all(|which| status(which) & RX_IDLE != 0) {
                let found = self.rig.flush();
                return self.compare(found);
            }
            self.rig.advance(1_000_000);
            self.receive()?;
        }
        anyhow::bail!("the card does not come to rest")
    }

    /// Every frame has one outcome, and the card has violated no rule.
    fn judge(&self, totals: &mut Totals) -> anyhow::Result<()> {
        let mut placed = 0;
        for which in 0..self.rig.ports() {
            let counter = |register| self.rig.read64(&port::THIS, which, register, 0);
            let frames = counter(port::RX_FRAMES);
            let lost: u64 = LOST.into_iter().map(counter).sum();
            let lists = (0..STREAMS).map(|stream| self.rig.outcomes(which as u16 * 32 + stream));
            let (mut ends, mut good) = (0, 0);
            for outcomes in lists {
                ends += outcomes.iter().sum::<u64>();
                good += outcomes[0];
            }
            anyhow::ensure!(
                frames == FRAMES as u64 && frames == lost + ends,
                "port {which}: {frames} frames of {FRAMES}, {lost} lost, {ends} in lists"
            );
            placed += good;
            totals.frames += frames;
            totals.dropped += frames - good;
        }
        anyhow::ensure!(
            placed == self.delivered,
            "{placed} payloads placed, {} read",
            self.delivered
        );
        let wrong = self.rig.wrong;
        let look = |card: &mut VerilatedCard, memory: &mut HostMemory| {
            (card.violations(), memory.trespasses, card.now())
        };
        let (broken, trespasses, now) = self.rig.device.with(look);
        anyhow::ensure!(
            broken.is_empty() && wrong == 0 && trespasses == 0,
            "{wrong} events that cannot be, {trespasses} trespasses, {broken:?}"
        );
        totals.delivered += self.delivered;
        totals.ps += now;
        Ok(())
    }
}

/// A frame to a port, its stream (3: none), and its payload. One in twenty is bad.
fn random_frame(which: usize, rng: &mut Xoshiro256PlusPlus) -> (WireFrame, u16, Vec<u8>) {
    let stream = rng.random_range(0..4);
    let len = match rng.random_range(0..4) {
        0 => rng.random_range(0..1400),
        1 => rng.random_range(0..300),
        _ => rng.random_range(4..20),
    };
    let payload: Vec<u8> = (0..len).map(|_| rng.random()).collect();
    let mut frame = datagram(which, rng.random(), 5000 + stream, &payload);
    frame.end = match rng.random_range(0..40) {
        0 => FrameEnd::BadFcs,
        1 => FrameEnd::Error,
        _ => FrameEnd::Good,
    };
    (frame, stream, payload)
}
