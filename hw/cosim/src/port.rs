//! A simulated card as a port with both ends of its first wire: for a program that emulates the card's
//! peers itself.
//!
//! | queue | receives | sends |
//! | --- | --- | --- |
//! | 0 | frames received by the card | to the card |
//! | 1 | frames sent by the card | by the card |
//!
//! So each queue gets the frames of the transmit queue of its number, as in the driver `loopback`, and
//! the card, with the released driver, is between them: on the way to queue 0 it receives, on the
//! way to queue 1 it sends.
//!
//! Time advances when the program polls the card, 20 ns in each round; the
//! peers, which may be on another thread, do not drive it. Their frames wait until the wire has
//! space.
//!
//! Frames to the card have arrived at their start at its MAC, by the card's own stamp: the
//! wait on the path to the driver is a part of every latency.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pollux_card_model::registers::{functions, timing, tlb};
use pollux_card_model::{FUNCTIONS, FrameEnd, Register, SimulatedCard, WireFrame};
use pollux_mempool::time::{Ns, Tsc};
use pollux_mempool::{BurstMut, PoolCache};
use pollux_pmd::bus::{Bus, BusError, Device};
use pollux_pmd::driver::{
    Capabilities, Description, Driver, Feature, Link, Origin, Queues, RxDriver, SpecOption,
    Statistics, Support, TxDriver,
};
use pollux_pmd::drivers::card;
use pollux_pmd::ledger::Sent;
use pollux_pmd::port::RxState;
use pollux_pmd::spec::SpecError;
use pollux_pmd::{
    ArrivalTime, Cause, Clock, MemoryGrant, PortConfig, PortError, PortSpec, Registry, Tally,
};

use crate::CosimDevice;

/// Its driver's name.
pub const NAME: &str = "card-sim";

/// The port of the card that has a peer.
const WIRE: usize = 0;

/// Frames that wait on the wire itself: few enough that their peer is limited, and enough that the
/// wire is never idle for lack of one.
const AHEAD: usize = 16;

/// Shortest frame without its FCS: a sender pads (IEEE 802.3 section 3.2.8).
const SHORTEST: usize = 60;

/// Option `function`.
const FUNCTION: SpecOption = SpecOption {
    key: "function",
    values: "pf|vfN",
    default: "pf",
    text: "the card's function, a virtual one from vf1 to vf7: function 0 gives it the port, two \
           event queues and 16 pages before it is opened",
};

/// What a virtual function has: the port with the peer, a queue for each direction, a group of pages.
const SHARE: [(Register, u32); 3] = [
    (functions::PORTS, 0x1),
    (functions::QUEUE_OWNERS, 0x11),
    (functions::PAGES, 0x1),
];

/// Longest wait of a chunk for its page, in cycles: 200 us. Function 0 decides it for all.
const PATIENCE: u32 = 50_000;

/// The function of a spec.
fn function(spec: &PortSpec) -> Result<u8, SpecError> {
    let Some(text) = spec.option(FUNCTION.key) else {
        return Ok(0);
    };
    let number = text
        .strip_prefix("vf")
        .and_then(|number| number.parse().ok());
    match (text, number) {
        ("pf", _) => Ok(0),
        (_, Some(number)) if (1..FUNCTIONS as u8).contains(&number) => Ok(number),
        _ => Err(spec.bad_value(
            FUNCTION.key,
            text,
            "pf, or a virtual function from vf1 to vf7",
        )),
    }
}

/// The driver's description.
const DESCRIPTION: Description = Description {
    options: &[FUNCTION],
    check: |spec| function(spec).map(drop),
    features: &[
        (Feature::Receive, Support::Yes),
        (Feature::Send, Support::Yes),
        (Feature::Link, Support::Yes),
        (Feature::Speed, Support::Yes),
        (Feature::Statistics, Support::Yes),
        (Feature::ZeroCopyTx, Support::Yes),
        (Feature::Needs, Support::Partly("Verilator 5 and g++")),
    ],
    ..Description::new(
        NAME,
        "Pollux's card from its RTL, simulated, with a peer at its first wire",
    )
};

/// Adds the card's RTL to a program's drivers. Its time is that of the port of it that was
/// polled last.
///
/// Where the crate was built without Verilator, opening such a port fails with a message.
pub fn register(registry: &mut Registry) -> SimulatedTime {
    let time = SimulatedTime::default();
    let theirs = time.clone();
    registry.register_granted(DESCRIPTION, move |spec, grant| {
        from_rtl(spec, &theirs, grant)
    });
    time
}

#[cfg(has_verilator)]
fn from_rtl(
    spec: &PortSpec,
    time: &SimulatedTime,
    grant: MemoryGrant,
) -> Result<Box<dyn Driver>, PortError> {
    use crate::pcie::Behaviour;
    use crate::verilated::VerilatedCard;
    let card = VerilatedCard::new(1, Behaviour::prompt());
    open(&CosimDevice::new(card), spec, time, grant)
}

#[cfg(not(has_verilator))]
fn from_rtl(
    spec: &PortSpec,
    _: &SimulatedTime,
    _: MemoryGrant,
) -> Result<Box<dyn Driver>, PortError> {
    Err(PortError::Device {
        port: spec.to_string(),
        what: "there is no simulated card, as this program was built without Verilator; \
               apt-get install verilator g++, and build it again"
            .into(),
    })
}

/// Opens a card as such a port, and exposes its time.
///
/// # Errors
/// It does not respond as the card's driver expects.
pub fn open<C: SimulatedCard>(
    device: &CosimDevice<C>,
    spec: &PortSpec,
    time: &SimulatedTime,
    grant: MemoryGrant,
) -> Result<Box<dyn Driver>, PortError> {
    let number = function(spec)?;
    if number > 0 {
        let bus = device.bar(0, tlb::THIS.at + tlb::THIS.size);
        let bus = bus.map_err(|error| failed(spec, &error))?;
        for (register, one) in SHARE {
            bus.write32(functions::THIS.at + register.at, u32::from(number) * one);
        }
        bus.write32(tlb::THIS.at + tlb::TIMEOUT.at, PATIENCE);
    }
    // The address of the driver `loopback`, so that peers need not know which of the two it is.
    let card: PortSpec = format!("{NAME}:mac=02:00:00:00:00:01").parse()?;
    Ok(Box::new(Ends {
        spec: spec.to_string(),
        card: card::open(Arc::new(device.function(number)), &card, grant)?,
        device: device.clone(),
        time: time.clone(),
    }))
}

fn failed(spec: &PortSpec, error: &BusError) -> PortError {
    PortError::Device {
        port: spec.to_string(),
        what: error.to_string(),
    }
}

/// The time of a simulated card, in nanoseconds, for loops that share it: reading it takes no time.
#[derive(Clone, Debug, Default)]
pub struct SimulatedTime(Arc<AtomicU64>);

impl Clock for SimulatedTime {
    fn now(&self) -> Tsc {
        // Earlier events reach this by the wire.
        Tsc(self.0.load(Ordering::Relaxed))
    }

    fn to_ns(&self, cycles: u64) -> Ns {
        Ns(cycles)
    }

    fn to_cycles(&self, ns: Ns) -> u64 {
        ns.0
    }

    /// Without a bound: rounds take time of the machine, and the simulation needs far more of it than
    /// of its own time.
    fn rounds(&self, _: Ns) -> u64 {
        u64::MAX
    }

    /// Yields to the thread that simulates.
    fn relax(&self) {
        std::thread::yield_now();
    }
}

struct Ends<C: SimulatedCard> {
    spec: String,
    card: Box<dyn Driver>,
    device: CosimDevice<C>,
    time: SimulatedTime,
}

/// Configuration of the card's own driver.
fn card_config(config: &PortConfig) -> PortConfig {
    PortConfig {
        rx_queues: 1,
        tx_queues: 1,
        ..config.clone()
    }
}

impl<C: SimulatedCard> Driver for Ends<C> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_rx_queues: 2,
            max_tx_queues: 2,
            ..self.card.capabilities()
        }
    }

    fn validate(&self, config: &PortConfig) -> Result<(), PortError> {
        if (config.rx_queues, config.tx_queues) == (2, 2) {
            return self.card.validate(&card_config(config));
        }
        Err(PortError::Unsupported {
            port: self.spec.clone(),
            asked: format!(
                "{} receive and {} transmit queues",
                config.rx_queues, config.tx_queues
            ),
            offered: "two of each: the card's, and those of its peer".into(),
        })
    }

    fn start(&mut self, config: &PortConfig, port: u16) -> Result<Queues, PortError> {
        let cards = self.card.start(&card_config(config), port)?;
        let behind = set_time(&self.device);
        let behind = behind.map_err(|error| PortError::Device {
            port: self.spec.clone(),
            what: error.to_string(),
        })?;
        let (wire, room) = (Arc::<Wire>::default(), config.ring);
        let mut rx: Vec<Box<dyn RxDriver>> = Vec::new();
        for card in cards.rx {
            rx.push(Box::new(CardRx {
                card,
                device: self.device.clone(),
                time: self.time.clone(),
                wire: wire.clone(),
                behind,
            }));
        }
        let (theirs, time) = (wire.clone(), self.time.clone());
        rx.push(Box::new(PeerRx { wire: theirs, time }));
        let mut tx: Vec<Box<dyn TxDriver>> = vec![Box::new(PeerTx { wire, room })];
        tx.extend(cards.tx);
        Ok(Queues { rx, tx })
    }

    fn stop(&mut self) -> Result<(), PortError> {
        self.card.stop()
    }

    fn link(&self) -> Link {
        self.card.link()
    }

    fn statistics(&self) -> Statistics {
        self.card.statistics()
    }

    fn registers(&self) -> String {
        self.card.registers()
    }
}

/// Makes a card stamp frames by the time of its simulation; returns how many nanoseconds its stamps are
/// behind, because a register write takes some time.
fn set_time<C: SimulatedCard>(device: &CosimDevice<C>) -> Result<u64, BusError> {
    let bus = device.bar(0, timing::THIS.at + timing::THIS.size)?;
    let at = |register: Register| timing::THIS.at + register.at;
    let now = || device.with(|card, _| card.now() / 1000);
    let set = now();
    bus.write32(at(timing::SET), set as u32);
    bus.write32(at(timing::SET_HIGH), (set >> 32) as u32);
    let before = now();
    let low = bus.read32(at(timing::NOW));
    // The clock was read in the middle of the round trip.
    let middle = before.midpoint(now());
    let stamp = u64::from(bus.read32(at(timing::NOW_HIGH))) << 32 | u64::from(low);
    Ok(middle.saturating_sub(stamp))
}

/// Frames between the card and its peer.
#[derive(Default)]
struct Wire(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    to_card: VecDeque<WireFrame>,
    from_card: VecDeque<WireFrame>,
}

impl Wire {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The card's receive queue; its poll moves the frames of both directions.
struct CardRx<C: SimulatedCard> {
    card: Box<dyn RxDriver>,
    device: CosimDevice<C>,
    time: SimulatedTime,
    wire: Arc<Wire>,
    /// Delay of the card's stamps behind its time, in nanoseconds.
    behind: u64,
}

impl<C: SimulatedCard> RxDriver for CardRx<C> {
    /// In simulated time, in any case.
    fn arrival_time(&self) -> ArrivalTime {
        ArrivalTime::Hardware
    }

    fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        let before = out.len();
        // The driver reads its clock, and so advances time.
        let n = self.card.rx(cache, out, origin, tally);
        for mbuf in out.as_mut_slice().iter_mut().skip(before) {
            if let Some(wire) = mbuf.wire_time() {
                mbuf.set_arrival(Tsc(wire.0 + self.behind));
            }
        }
        let now = self.device.with(|card, _| {
            let mut waiting = self.wire.lock();
            while card.coming(WIRE) < AHEAD
                && let Some(frame) = waiting.to_card.pop_front()
            {
                card.put(WIRE, frame);
            }
            while let Some(frame) = card.take(WIRE) {
                waiting.from_card.push_back(frame);
            }
            card.now()
        });
        self.time.0.store(now / 1000, Ordering::Relaxed);
        n
    }

    fn state(&self) -> RxState {
        self.card.state()
    }

    fn sync_counters(&mut self, tally: &mut Tally) {
        self.card.sync_counters(tally);
    }

    fn event(&self) -> Option<BorrowedFd<'_>> {
        // Time would stop while its reader sleeps.
        None
    }

    fn finish(&mut self, tally: &mut Tally) {
        self.card.finish(tally);
    }
}

/// The peer's: frames that the card has sent.
struct PeerRx {
    wire: Arc<Wire>,
    time: SimulatedTime,
}

impl RxDriver for PeerRx {
    fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        let before = out.len();
        let mut waiting = self.wire.lock();
        while out.free() > 0
            && let Some(frame) = waiting.from_card.pop_front()
        {
            tally.count_from_wire(1, frame.bytes.len() as u64);
            if frame.end != FrameEnd::Good {
                tally.count_dropped(Cause::DeviceError, 1);
                continue;
            }
            match cache.alloc_from(&frame.bytes) {
                Some(mut mbuf) => {
                    origin.stamp(&mut mbuf, self.time.now());
                    drop(out.push(mbuf));
                }
                None => tally.count_dropped(Cause::NoMbuf, 1),
            }
        }
        out.len() - before
    }

    fn finish(&mut self, tally: &mut Tally) {
        for frame in self.wire.lock().from_card.drain(..) {
            tally.count_from_wire(1, frame.bytes.len() as u64);
            tally.count_dropped(Cause::Aborted, 1);
        }
    }
}

/// The peer's: frames to the card.
struct PeerTx {
    wire: Arc<Wire>,
    /// Frames that may wait.
    room: usize,
}

impl TxDriver for PeerTx {
    fn tx(&mut self, cache: &mut PoolCache, burst: &mut BurstMut<'_>, sent: &mut Sent) -> usize {
        let mut waiting = self.wire.lock();
        let fits = burst
            .len()
            .min(self.room.saturating_sub(waiting.to_card.len()));
        let mut bytes = 0;
        burst.take_front(fits, |mbuf| {
            let mut frame = vec![0; mbuf.total_len()];
            mbuf.copy_to(0, &mut frame);
            cache.free(mbuf);
            bytes += frame.len() as u64;
            frame.resize(frame.len().max(SHORTEST), 0);
            waiting.to_card.push_back(WireFrame::good(frame));
        });
        sent.count(fits as u64, bytes);
        fits
    }
}
