//! The hot loops of the L0 trigger, on fixed events.

use std::f32::consts::TAU;
use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddrV4};

use anyhow::{Context, Result, anyhow};
use pollux_mempool::time::Ns;
use pollux_mempool::{PoolCache, PoolConfig};
use pollux_na62::formats::hits::{HEADER_LEN, HitsFrame, HitsWriter, MAX_FRAME, MAX_HITS};
use pollux_na62::formats::mtp::{
    MAX_PACKET, MAX_PRIMITIVES, MtpPacket, MtpWriter, Primitive, SOURCE_L0TP, SOURCE_RICH,
};
use pollux_na62::l0::{Decision, Event, Fragment, Fragments, Frame, fragment_pool};
use pollux_na62::rich::Hit;
use pollux_na62::rich::find::{FinderConfig, RingFinder};
use pollux_na62::rich::fit::fit;
use pollux_na62::rich::geometry::{board_of, pm_at};
use pollux_na62::stages::{Answer, Build, BuildOptions};
use pollux_na62::{EVENT_CACHE, L0Env, stage_env, stage_registry};
use pollux_pipelines::{Batch, Each, Moment, Stage, StageEnv};
use pollux_pmd::net::UDP_HEADERS;
use pollux_pmd::stream::StreamId;
use pollux_pmd::{Clock, TscClock};

use crate::loops::{Loop, Round, pool, port, template};

const BOARDS: u8 = 4;

/// Events of a round.
const EVENTS: u64 = 8;

/// Slots of 25 ns between two events.
const APART: u64 = 40;

/// Points of the circle that is fitted.
const POINTS: usize = 16;

pub(crate) fn all() -> Vec<Loop> {
    let events = |name, element, rounds, make| Loop {
        name,
        element,
        elements: EVENTS,
        rounds,
        make,
    };
    let primitives = |name, make| Loop {
        name,
        element: "primitive",
        elements: MAX_PRIMITIVES as u64,
        rounds: 256,
        make,
    };
    vec![
        events(
            "hits_encode",
            "event of 18 hits",
            1024,
            || Ok(hits_encode()),
        ),
        events("hits_decode", "event of 18 hits", 1024, hits_decode),
        primitives("mtp_encode", || Ok(mtp_encode())),
        primitives("mtp_decode", mtp_decode),
        Loop {
            name: "ring_fit",
            element: "circle of 16 points",
            elements: 1,
            rounds: 4096,
            make: || Ok(ring_fit()),
        },
        events("find_1", "event of one ring", 256, || find(1)),
        events("find_3", "event of three rings", 128, || find(3)),
        events("find_mix", "event of rings that cross", 64, find_mix),
        Loop {
            name: "build",
            element: "fragment of one of 4 sources, stored and built",
            elements: EVENTS * u64::from(BOARDS),
            rounds: 1024,
            make: build,
        },
        events(
            "l0_chain",
            "event, from its frames to its answer",
            256,
            l0_chain,
        ),
    ]
}

/// The hits of event `n`: so many rings of 16 hits, and two hits of noise.
fn event(n: u64, rings: u64) -> Vec<Hit> {
    let mut pms: Vec<u16> = (0..rings)
        .flat_map(|ring| {
            let k = n * 3 + ring;
            let x = (k % 5) as f32 * 30.0 - 60.0;
            let y = (k % 7) as f32 * 20.0 - 60.0;
            let r = 90.0 + (k % 11) as f32 * 9.0;
            (0..POINTS).filter_map(move |i| {
                let (sin, cos) = (TAU * (i as f32 + 0.3) / POINTS as f32).sin_cos();
                pm_at((k % 2) as u8, x + r * cos, y + r * sin)
            })
        })
        .chain([(n * 37 % 976) as u16, (976 + n * 53 % 976) as u16])
        .collect();
    pms.sort_unstable();
    pms.dedup();
    let hit = |&pm: &u16| Hit {
        pm,
        fine: 100 + pm % 8,
    };
    pms.iter().map(hit).collect()
}

/// The part of an event that a board reads.
fn part(hits: &[Hit], board: u8) -> Vec<Hit> {
    let own = |hit: &&Hit| board_of(hit.pm, BOARDS) == board;
    hits.iter().filter(own).copied().collect()
}

/// A container of a round's events.
fn container(shots: &[Vec<Hit>], board: u8) -> Result<Vec<u8>> {
    let mut writer = HitsWriter::new(vec![0; MAX_FRAME], SOURCE_RICH, board, 0)?;
    for (n, hits) in (0..).zip(shots) {
        writer.push(n * APART, hits)?;
    }
    let (mut bytes, len) = writer.finish();
    bytes.truncate(len);
    Ok(bytes)
}

fn hits_encode() -> Round {
    let events: Vec<_> = (0..EVENTS).map(|n| event(n, 1)).collect();
    let mut buffer = [0; MAX_FRAME];
    Box::new(move || {
        let Ok(mut writer) = HitsWriter::new(&mut buffer[..], SOURCE_RICH, 0, 0) else {
            return false;
        };
        let mut numbered = (0..).zip(black_box(&events));
        let written = numbered.all(|(n, hits)| writer.push(n * APART, hits).is_ok());
        black_box(writer.finish());
        written
    })
}

fn hits_decode() -> Result<Round> {
    let events: Vec<_> = (0..EVENTS).map(|n| event(n, 1)).collect();
    let bytes = container(&events, 0)?;
    let mut hits = [Hit::default(); MAX_HITS];
    Ok(Box::new(move || {
        let Ok(frame) = HitsFrame::parse(black_box(&bytes)) else {
            return false;
        };
        let (mut events, mut n) = (frame.events(), 0);
        while let Some(event) = events.next_into(&mut hits) {
            black_box(event);
            n += 1;
        }
        n == EVENTS
    }))
}

/// A primitive every 12 slots: some need a word for the high part of their time.
fn primitives() -> Vec<Primitive> {
    let primitive = |n| Primitive {
        id: 0x100 + n as u16,
        timestamp: 12 * n,
        fine: n as u8,
    };
    (0..MAX_PRIMITIVES as u32).map(primitive).collect()
}

fn mtp_encode() -> Round {
    let primitives = primitives();
    let mut buffer = [0; MAX_PACKET];
    Box::new(move || {
        let Ok(mut writer) = MtpWriter::new(&mut buffer[..], SOURCE_L0TP, 0) else {
            return false;
        };
        let mut primitives = black_box(&primitives).iter();
        let written = primitives.all(|&primitive| writer.push(primitive).is_ok());
        black_box(writer.finish());
        written
    })
}

fn mtp_decode() -> Result<Round> {
    let mut writer = MtpWriter::new([0; MAX_PACKET], SOURCE_L0TP, 0)?;
    primitives()
        .into_iter()
        .try_for_each(|primitive| writer.push(primitive))?;
    let (bytes, len) = writer.finish();
    Ok(Box::new(move || {
        let Ok(packet) = MtpPacket::parse(black_box(&bytes[..len])) else {
            return false;
        };
        packet.primitives().map(black_box).count() == MAX_PRIMITIVES
    }))
}

fn ring_fit() -> Round {
    // Off the circle by up to 3 mm, the size of the error of a hit.
    let point = |i: usize| {
        let (sin, cos) = (TAU * i as f32 / POINTS as f32).sin_cos();
        let r = 120.0 + (i * 7 % 13) as f32 / 2.0 - 3.0;
        [20.0 + r * cos, -30.0 + r * sin]
    };
    let xs: [f32; POINTS] = std::array::from_fn(|i| point(i)[0]);
    let ys: [f32; POINTS] = std::array::from_fn(|i| point(i)[1]);
    Box::new(move || black_box(fit(black_box(&xs), black_box(&ys))).is_some())
}

fn find(rings: u64) -> Result<Round> {
    let mut finder = RingFinder::new(FinderConfig::default())?;
    let events: Vec<_> = (0..EVENTS).map(|n| event(n, rings)).collect();
    Ok(Box::new(move || {
        let mut events = black_box(&events).iter();
        events.all(|hits| !black_box(finder.find(hits)).is_empty())
    }))
}

/// Events of one to three rings that cross on one disk, with few hits, and with noise: in some it
/// is doubtful which hits are whose.
fn find_mix() -> Result<Round> {
    let crossing = |n: u64| -> Vec<Hit> {
        let rings = (0..=n % 3).flat_map(|ring| {
            let k = (n * 3 + ring) as f32;
            let (x, y) = (k * 37.0 % 90.0 - 45.0, k * 53.0 % 80.0 - 40.0);
            let r = 110.0 + k * 29.0 % 75.0;
            // Where light falls is not even, and not quite on the circle.
            (0..12).filter_map(move |i| {
                let at = i as f32 * (7.9 + 0.3 * k);
                let (sin, cos) = (at + k).sin_cos();
                let r = r + (at * 11.0) % 14.0 - 7.0;
                pm_at(0, x + r * cos, y + r * sin)
            })
        });
        let noise = (0..4).map(|i| ((n * 37 + i * 211) % 976) as u16);
        let mut pms: Vec<u16> = rings.chain(noise).collect();
        pms.sort_unstable();
        pms.dedup();
        pms.iter().map(|&pm| Hit { pm, fine: 100 }).collect()
    };
    let mut finder = RingFinder::new(FinderConfig::default())?;
    let events: Vec<_> = (0..EVENTS).map(crossing).collect();
    Ok(Box::new(move || {
        let events = black_box(&events).iter();
        finder.find_batch(events.map(|hits| &hits[..])) == EVENTS as usize
    }))
}

fn env() -> StageEnv {
    stage_env(usize::from(BOARDS))
}

/// Where events are freed.
fn event_cache(env: &StageEnv) -> Result<PoolCache> {
    Ok(env
        .get::<L0Env>()?
        .events
        .as_ref()
        .context("no events are built")?
        .cache(EVENT_CACHE)?)
}

fn build() -> Result<Round> {
    let mut env = env();
    let mut build = Build::new(&BuildOptions::default(), &mut env).map_err(|e| anyhow!(e))?;
    let mut events = event_cache(&env)?;
    let arrival = TscClock::get().now();
    let shots: Vec<_> = (0..EVENTS).map(|n| event(n, 1)).collect();
    let parts: Vec<Vec<_>> = (0..BOARDS)
        .map(|board| shots.iter().map(|hits| part(hits, board)).collect())
        .collect();
    let mut cache = fragment_pool(2, PoolConfig::default())?.cache(2)?;
    let mut batch = Batch::with_capacity(1);
    let mut round = 0;
    Ok(Box::new(move || {
        let Some(mut fragments) = Fragments::new(&mut cache) else {
            return false;
        };
        // A frame of each board, one after another.
        let mut fits = true;
        for (source, parts) in (0..).zip(&parts) {
            for (n, hits) in (0..).zip(parts) {
                let timestamp = (round * EVENTS + n) * APART;
                fits &= fragments.push(&Fragment {
                    timestamp,
                    source,
                    ends_frame: n == EVENTS - 1,
                    lost: 0,
                    reordered: false,
                    at: Moment(round * EVENTS * APART * 25),
                    arrival,
                    hits,
                });
            }
        }
        round += 1;
        fits &= batch.push(fragments).is_ok();
        let mut complete = 0;
        let mut out = Each(|event: Event| {
            complete += u64::from(event.head().complete);
            events.free(event.into());
        });
        build.process(&mut batch, &mut out);
        batch
            .drain()
            .for_each(|fragments| cache.free(fragments.into()));
        fits && complete == EVENTS
    }))
}

/// Everything between the ports of a trigger: a frame of each board a round.
fn l0_chain() -> Result<Round> {
    let text = r#"stage = [
        { name = "decompress" }, { name = "build" }, { name = "rings" }, { name = "decide" },
    ]"#;
    let mut table: toml::Table = text.parse()?;
    let stages = table
        .remove("stage")
        .context("no stages")?
        .try_into::<Vec<toml::Table>>()?;
    let mut env = env();
    let mut pipeline = stage_registry().pipeline::<Frame, Decision>(&stages, &mut env)?;
    let mut decisions = event_cache(&env)?;

    let pool = pool()?;
    let mut port = port("null", &pool)?;
    let mut cache = pool.cache(512)?;
    let events: Vec<_> = (0..EVENTS).map(|n| event(n, 1)).collect();
    let mut frames = Batch::with_capacity(usize::from(BOARDS));
    for board in 0..BOARDS {
        let parts: Vec<_> = events.iter().map(|hits| part(hits, board)).collect();
        let payload = container(&parts, board)?;
        let bytes = [&[0; UDP_HEADERS], &payload[..]].concat();
        let frame = Frame {
            mbuf: cache.alloc_from(&bytes).context("no buffer")?,
            stream: StreamId(board.into()),
            offset: UDP_HEADERS as u16,
            len: payload.len() as u16,
            at: Moment(0),
        };
        frames.push(frame).ok().context("a full batch")?;
    }
    let mut answer = Answer::new(SOURCE_L0TP, Ns(1_000_000), true);
    answer.set_peer(template(SocketAddrV4::new(
        Ipv4Addr::new(10, 0, 0, 2),
        58_913,
    )));
    let clock = TscClock::get();
    let mut round = 0_u64;
    Ok(Box::new(move || {
        let (now, start) = (clock.now(), round * EVENTS * APART);
        for frame in frames.as_mut_slice() {
            frame.at = Moment(start * 25);
            frame.mbuf.set_arrival(now);
            // The sequence number and the first time stamp, in the header's second and third word.
            let header = &mut frame.mbuf.data_mut()[UDP_HEADERS..UDP_HEADERS + HEADER_LEN];
            header[8..12].copy_from_slice(&(round as u32).to_le_bytes());
            header[16..24].copy_from_slice(&start.to_le_bytes());
        }
        let tx = &mut port.tx[0];
        let (mut decided, mut pushed) = (0, true);
        let mut out = Each(|decision: Decision| {
            decided += u64::from(decision.verdict().accepted());
            // A packet has room for the decisions of a round.
            pushed &= answer.push(&decision);
            decisions.free(decision.into());
        });
        pipeline.process(&mut frames, &mut out);
        pipeline.tick(Moment(start * 25), &mut out);
        answer.flush(Some(tx), &mut cache);
        round += 1;
        pushed && decided == EVENTS
    }))
}
