//! A custom stage between two stages of the trigger: a veto on the time of a hit.
//!
//! The stage runs twice on the same frames from a loopback port: first in a chain with static
//! types, then by its name in a pipeline that is built from TOML.

use std::error::Error;
use std::f32::consts::TAU;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use pollux_mempool::{Burst, Mempool, PoolCache, PoolConfig};
use pollux_na62::formats::hits::{HitsWriter, MAX_FRAME};
use pollux_na62::formats::mtp::SOURCE_RICH;
use pollux_na62::l0::{Decision, Fragments, Frame};
use pollux_na62::rich::geometry::{PMS, board_of, pm_at};
use pollux_na62::rich::{Hit, find::FinderConfig};
use pollux_na62::stages::{
    Build, BuildOptions, Decide, DecideOptions, Decompress, DecompressOptions, FindRings,
};
use pollux_na62::{L0Env, stage_env, stage_registry};
use pollux_pipelines::{
    Batch, DynStage, Each, Moment, Output, Pipeline, Stage, StageEnv, StageExt,
};
use pollux_pmd::net::{
    MacAddr, ParseOptions, Parsed, UDP_HEADERS, UdpEndpoint, UdpTemplate, parse,
};
use pollux_pmd::stream::{DemuxBuilder, StreamId};
use pollux_pmd::{Cause, Count, PortConfig, Registry, StartedPort, Tally};
use serde::Deserialize;

type AnyError = Box<dyn Error>;

/// Options of the stage; an unknown key in the configuration is an error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VetoOptions {
    /// Earliest and latest time of a hit within its slot, in units of 25/256 ns.
    fine: [u16; 2],
}

/// Removes the hits outside the time range from all fragments.
struct Veto {
    fine: [u16; 2],
    vetoed: Arc<Count>,
}

impl Stage for Veto {
    type In = Fragments;
    type Out = Fragments;

    /// As of the previous stage.
    const GATHERED: usize = 1;

    fn process(&mut self, batch: &mut Batch<Fragments>, out: &mut impl Output<Fragments>) {
        let [first, last] = self.fine;
        for mut fragments in batch.drain() {
            // Every fragment is passed on, even an empty one: the builder counts frames by their
            // fragments.
            let vetoed = fragments.retain(|hit| (first..=last).contains(&hit.fine));
            self.vetoed.add(vetoed);
            out.push(fragments);
        }
    }
}

const BOARDS: u8 = 4;
const UDP_PORT: u16 = 7500;
const EVENTS: u64 = 4000;
/// Number of events in a frame.
const BUNCH: u64 = 10;

fn main() -> Result<(), AnyError> {
    compiled()?;
    configured()
}

/// The chain as one type. As one stage of a pipeline it is timed as a whole.
fn compiled() -> Result<(), AnyError> {
    let mut env = stage_env(BOARDS.into());
    let vetoed = Arc::new(Count::default());
    let chain = Decompress::new(&DecompressOptions::default(), &mut env)?
        .then(Veto {
            fine: [92, 108],
            vetoed: Arc::clone(&vetoed),
        })
        .then(Build::new(&BuildOptions::default(), &mut env)?)
        .then(FindRings::new(FinderConfig::default())?)
        .then(Decide::new(&DecideOptions::default(), &mut env)?);
    println!("compiled as one chain:");
    run(
        Pipeline::new(vec![DynStage::new("chain", chain)])?,
        &env,
        &vetoed,
    )
}

/// The chain from a configuration, with the stage registered beside the built-in ones.
fn configured() -> Result<(), AnyError> {
    let mut env = stage_env(BOARDS.into());
    let vetoed = Arc::new(Count::default());
    let mut registry = stage_registry();
    let counter = Arc::clone(&vetoed);
    registry.register("veto", move |options: VetoOptions, _env| {
        let VetoOptions { fine } = options;
        if fine[0] > fine[1] {
            return Err(format!("fine = {fine:?}: earliest first"));
        }
        Ok(DynStage::new(
            "veto",
            Veto {
                fine,
                vetoed: Arc::clone(&counter),
            },
        ))
    });
    let mut config: toml::Table = r#"
        stage = [
            { name = "decompress" },
            { name = "veto", fine = [92, 108] },
            { name = "build", deadline_us = 300 },
            { name = "rings" },
            { name = "decide", rule = [{ name = "one-ring", max_rings = 1 }] },
        ]"#
    .parse()?;
    let tables: Vec<toml::Table> = config.remove("stage").ok_or("no stage")?.try_into()?;
    println!("made from a configuration:");
    run(registry.pipeline(&tables, &mut env)?, &env, &vetoed)
}

/// Sends frames over a link, processes them with the pipeline, and prints the result.
fn run(
    mut pipeline: Pipeline<Frame, Decision>,
    env: &StageEnv,
    vetoed: &Count,
) -> Result<(), AnyError> {
    let pool = Mempool::new(PoolConfig::default())?;
    let port = Registry::builtin()
        .open("loopback")?
        .configure(PortConfig::new(pool.clone()))?;
    let StartedPort {
        port,
        mut rx,
        mut tx,
    } = port.start()?;
    let mut cache = pool.cache(256)?;
    // Each board has a stream of its own, by its UDP port.
    let ports = (0..u16::from(BOARDS)).fold(DemuxBuilder::new(), |demux, board| {
        demux.port(UDP_PORT + board, StreamId(board))
    });
    let mut demux = ports.build()?;
    let mut receiver = Tally::new();
    let mut ledger = env.ledger.clone();
    ledger.add("rx", rx[0].tally());
    ledger.add("receiver", receiver.view());

    let mut burst = Burst::<32>::new();
    let mut batch = Batch::default();
    let (mut decided, mut accepted) = (0, 0);
    let trigger = env.get::<L0Env>()?;
    let mut events = trigger
        .events
        .as_ref()
        .ok_or("no stage builds events")?
        .cache(256)?;
    let mut out = Each(|decision: Decision| {
        decided += 1;
        accepted += u64::from(decision.verdict().accepted());
        events.free(decision.into());
    });
    for n in 0..EVENTS / BUNCH {
        for board in 0..BOARDS {
            let frame = board_frame(board, n, &mut cache).ok_or("the pool is empty")?;
            burst.push(frame).map_err(|_| "the burst is full")?;
        }
        tx[0].tx(&mut cache, &mut burst);
        rx[0].rx(&mut cache, &mut burst);
        burst.take_all(|mbuf| {
            match parse(mbuf.data(), mbuf.total_len(), &ParseOptions::default()) {
                Ok(Parsed::Udp(udp)) => match demux.route(&udp) {
                    Some(stream) => {
                        let (offset, len) = (udp.payload_offset, udp.payload_len);
                        let at = Moment(n * 1000);
                        // It fits: a batch holds a burst.
                        let _ = batch.push(Frame {
                            mbuf,
                            stream,
                            offset,
                            len,
                            at,
                        });
                    }
                    None => receiver.count_dropped(Cause::DemuxMiss, 1),
                },
                Ok(_) => receiver.count_dropped(Cause::NotForUs, 1),
                Err(reject) => receiver.count_dropped(reject.into(), 1),
            }
        });
        pipeline.process(&mut batch, &mut out);
        batch.drain().for_each(|frame| cache.free(frame.mbuf));
    }
    pipeline.finish(&mut out);
    port.stop(rx, tx)?;

    let balance = ledger.check()?;
    println!("  events  {decided} decided, {accepted} accepted");
    println!(
        "  hits    {} vetoed, {} kept",
        vetoed.get(),
        trigger.stats.events.hits.get()
    );
    for (name, times) in pipeline.times() {
        println!(
            "  stage   {name}: {} ns a batch in the middle",
            times.percentiles().p50
        );
    }
    println!(
        "  ledger  balanced: {} from the wire = {} delivered + {} dropped",
        balance.from_wire,
        balance.delivered,
        balance.dropped_total()
    );
    Ok(())
}

/// Frame number `n` of a board: its hits of `BUNCH` events, with UDP headers.
fn board_frame(board: u8, n: u64, cache: &mut PoolCache) -> Option<pollux_mempool::Mbuf> {
    let mut writer = HitsWriter::new([0; MAX_FRAME], SOURCE_RICH, board, n as u32).ok()?;
    for event in n * BUNCH..(n + 1) * BUNCH {
        let mut hits = ring(event);
        hits.retain(|hit| board_of(hit.pm, BOARDS) == board);
        writer.push(event * 40, &hits).ok()?;
    }
    let (payload, len) = writer.finish();
    let end = |last| UdpEndpoint {
        mac: MacAddr([2, 0, 0, 0, 0, last]),
        socket: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, last), UDP_PORT + u16::from(board)),
    };
    let mut mbuf = cache.alloc()?;
    let frame = mbuf.append(UDP_HEADERS + len)?;
    frame[UDP_HEADERS..].copy_from_slice(&payload[..len]);
    UdpTemplate::new(end(1), end(2)).write(frame, len)?;
    Some(mbuf)
}

/// The hits of an event: a ring at time 100, and the same number of hits at random times and
/// places.
fn ring(event: u64) -> Vec<Hit> {
    let mut hits: Vec<Hit> = (0..16u16)
        .filter_map(|i| {
            let (sin, cos) = (TAU * f32::from(i) / 16.0).sin_cos();
            let r = 100.0 + (event % 80) as f32;
            let pm = pm_at((event % 2) as u8, r * cos, r * sin)?;
            let other = (event * 131 + u64::from(i) * 977) % PMS as u64;
            Some([
                Hit { pm, fine: 100 },
                Hit {
                    pm: other as u16,
                    fine: other as u16 % 256,
                },
            ])
        })
        .flatten()
        .collect();
    hits.sort_by_key(|hit| hit.pm);
    hits.dedup_by_key(|hit| hit.pm);
    hits
}
