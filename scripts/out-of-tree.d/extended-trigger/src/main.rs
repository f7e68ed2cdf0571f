//! The L0 trigger with a stage and a port driver of another program.
//!
//! The stage `veto` drops hits out of time, between two stages of the trigger. The driver `generated` is
//! a recording of frames that it makes itself: a ring in each event, and as many hits at random times.
//! Both are known by name, to the configuration and to `--port`.
//!
//! `TriggerBuilder::main` in the place of `build` would make the whole program `l0-trigger` of this,
//! with its command line.

#![forbid(unsafe_code)]

use std::error::Error;
use std::f32::consts::TAU;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use l0_trigger::Trigger;
use pollux_mempool::time::WireTime;
use pollux_mempool::{BurstMut, PoolCache};
use pollux_na62::formats::hits::{HitsWriter, MAX_FRAME};
use pollux_na62::formats::mtp::SOURCE_RICH;
use pollux_na62::l0::Fragments;
use pollux_na62::rich::Hit;
use pollux_na62::rich::geometry::{PMS, board_of, pm_at};
use pollux_na62::stage_registry;
use pollux_pipelines::{Batch, DynStage, Output, Stage};
use pollux_pmd::driver::{Capabilities, Description, Driver, Origin, Queues, RxDriver};
use pollux_pmd::net::{MacAddr, UDP_HEADERS, UdpEndpoint, UdpTemplate};
use pollux_pmd::{
    ArrivalTime, Cause, Clock as _, Count, PortConfig, PortError, Registry, RxState, Tally,
    TscClock,
};
use serde::Deserialize;

const CONFIGURATION: &str = r#"
    [answer]
    to = "nobody"

    [[stage]]
    name = "decompress"

    [[stage]]
    name = "veto"
    fine = [92, 108]

    [[stage]]
    name = "build"

    [[stage]]
    name = "rings"

    [[stage]]
    name = "decide"
"#;

const EVENTS: u64 = 4000;

fn main() -> Result<(), Box<dyn Error>> {
    let vetoed = Arc::new(Count::default());
    let mut stages = stage_registry();
    let counter = Arc::clone(&vetoed);
    stages.register("veto", move |options: VetoOptions, _env| {
        let VetoOptions { fine } = options;
        if fine[0] > fine[1] {
            return Err(format!("fine = {fine:?}: earliest first"));
        }
        let vetoed = Arc::clone(&counter);
        Ok(DynStage::new("veto", Veto { fine, vetoed }))
    });

    let mut ports = Registry::builtin();
    let about = Description::new("generated", "events with one ring each");
    ports.register(about, |_| Ok(Box::new(Generated)));

    let accepted = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&accepted);
    let trigger = Trigger::builder()
        .port_registry(ports)
        .stage_registry(stages)
        .configuration(CONFIGURATION)
        .port("generated")
        .on_decision(move |decision| {
            count.fetch_add(u64::from(decision.accepted), Ordering::Relaxed);
        })
        .build()?;
    let report = trigger.run()?;

    println!("{report}");
    println!("vetoed     {} hits", vetoed.get());
    let accepted = accepted.load(Ordering::Relaxed);
    if report.events() != EVENTS || report.accepted() != accepted || vetoed.get() == 0 {
        return Err(format!("{accepted} of {} events", report.events()).into());
    }
    Ok(())
}

/// Options of the stage in a configuration; a typo there is an error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VetoOptions {
    /// Earliest and latest time of a hit within its slot, in units of 25/256 ns.
    fine: [u16; 2],
}

/// Drops the hits of all fragments that are out of time.
struct Veto {
    fine: [u16; 2],
    vetoed: Arc<Count>,
}

impl Stage for Veto {
    type In = Fragments;
    type Out = Fragments;

    /// As of the stage before.
    const GATHERED: usize = 1;

    fn process(&mut self, batch: &mut Batch<Fragments>, out: &mut impl Output<Fragments>) {
        let [first, last] = self.fine;
        for mut fragments in batch.drain() {
            // Every fragment goes on, an empty one too: the builder counts frames by them.
            let vetoed = fragments.retain(|hit| (first..=last).contains(&hit.fine));
            self.vetoed.add(vetoed);
            out.push(fragments);
        }
    }
}

const BOARDS: u8 = 4;

/// Events in a frame.
const BUNCH: u64 = 10;

/// Slots of 25 ns between two events.
const SPACING: u64 = 400;

/// The port: its frames are those of a recording, so it ends, and it can wait.
struct Generated;

impl Driver for Generated {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_rx_queues: 1,
            max_tx_queues: 0,
            mac: None,
            max_frame: UDP_HEADERS + MAX_FRAME,
            checksum_offload: false,
            wire_time: true,
            recorded: true,
            kernel_backed: false,
        }
    }

    fn start(&mut self, _: &PortConfig, _: u16) -> Result<Queues, PortError> {
        Ok(Queues {
            rx: vec![Box::new(GeneratedRx { next: 0 })],
            tx: Vec::new(),
        })
    }
}

/// The receive queue; `next` is the number of the next frame over all boards.
struct GeneratedRx {
    next: u64,
}

impl RxDriver for GeneratedRx {
    fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        let mut received = 0;
        while out.free() > 0 && self.state() == RxState::Live {
            // Without a buffer the frame waits: a recording can.
            let Some(mut mbuf) = cache.alloc() else { break };
            let bunch = self.next / u64::from(BOARDS);
            let board = (self.next % u64::from(BOARDS)) as u8;
            self.next += 1;
            let written = mbuf
                .append(UDP_HEADERS + MAX_FRAME)
                .and_then(|frame| write_frame(board, bunch, frame));
            let len = written.unwrap_or(0);
            tally.count_from_wire(1, len as u64);
            mbuf.truncate(len);
            // It was captured when its last event had happened.
            let slots = (bunch + 1) * BUNCH * SPACING;
            mbuf.set_wire_time(WireTime(slots * 25));
            origin.stamp(&mut mbuf, TscClock::get().now());
            match out.push(mbuf) {
                Ok(()) => received += 1,
                Err(_) => tally.count_dropped(Cause::RingFull, 1),
            }
        }
        received
    }

    fn arrival_time(&self) -> ArrivalTime {
        ArrivalTime::Read
    }

    fn state(&self) -> RxState {
        if self.next < EVENTS / BUNCH * u64::from(BOARDS) {
            RxState::Live
        } else {
            RxState::Exhausted
        }
    }
}

/// Writes a board's frame of a bunch of events, with UDP headers; its length.
fn write_frame(board: u8, bunch: u64, frame: &mut [u8]) -> Option<usize> {
    let mut writer = HitsWriter::new([0; MAX_FRAME], SOURCE_RICH, board, bunch as u32).ok()?;
    for event in bunch * BUNCH..(bunch + 1) * BUNCH {
        let mut hits = ring(event);
        hits.retain(|hit| board_of(hit.pm, BOARDS) == board);
        writer.push(event * SPACING, &hits).ok()?;
    }
    let (payload, len) = writer.finish();
    let end = |host, port| UdpEndpoint {
        mac: MacAddr([2, 0, 0, 0, 0, host]),
        socket: SocketAddrV4::new(Ipv4Addr::new(198, 18, 0, host), port),
    };
    frame
        .get_mut(UDP_HEADERS..UDP_HEADERS + len)?
        .copy_from_slice(&payload[..len]);
    // The ports of the built-in configuration, one for each board.
    let to = end(1, 58_913 + u16::from(board));
    UdpTemplate::new(end(2, 30_000), to).write(frame, len)?;
    Some(UDP_HEADERS + len)
}

/// The hits of an event: a ring at time 100, and as many hits at any time and place.
fn ring(event: u64) -> Vec<Hit> {
    let mut hits: Vec<Hit> = (0..16u16)
        .filter_map(|i| {
            let (sin, cos) = (TAU * f32::from(i) / 16.0).sin_cos();
            let r = 100.0 + (event % 80) as f32;
            let pm = pm_at((event % 2) as u8, r * cos, r * sin)?;
            let other = ((event * 131 + u64::from(i) * 977) % PMS as u64) as u16;
            let noise = Hit {
                pm: other,
                fine: other % 256,
            };
            Some([Hit { pm, fine: 100 }, noise])
        })
        .flatten()
        .collect();
    hits.sort_by_key(|hit| hit.pm);
    hits.dedup_by_key(|hit| hit.pm);
    hits
}
