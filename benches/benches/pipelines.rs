//! Formats and stages of the L0 trigger, one core, events of the emulated detector.
#![allow(missing_docs)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Throughput, criterion_group, criterion_main};
use pollux_benches::{
    BOARDS, BUNCH, Criterion, Error, SEED, STEP, containers, events, frame, noisy_events, pool,
    report, settings,
};
use pollux_mempool::time::Tsc;
use pollux_mempool::{Mbuf, PoolCache, PoolConfig};
use pollux_na62::formats::hits::HitsFrame;
use pollux_na62::formats::mtp::{MAX_PACKET, MtpPacket, MtpWriter, Primitive, SOURCE_RICH};
use pollux_na62::formats::tel62::{Edge, Tel62, write_tel62};
use pollux_na62::formats::{hits, mtp, tel62};
use pollux_na62::l0::{Fragment, Fragments, Frame, fragment_pool};
use pollux_na62::merge::{HitArrival, Merge, MergeOptions, SLOT, StampedHit};
use pollux_na62::physics::model::{Rings, TruthEvent};
use pollux_na62::rich::find::{FinderConfig, MAX_BATCH, RingFinder};
use pollux_na62::rich::geometry::POSITIONS;
use pollux_na62::rich::{Hit, batch, fit};
use pollux_na62::stages::{
    Build, BuildOptions, Decide, DecideOptions, Decompress, DecompressOptions, FindRings,
};
use pollux_na62::{EVENT_CACHE, L0Env, stage_env};
use pollux_pipelines::simd::Simd;
use pollux_pipelines::{Batch, Each, Moment, Stage, StageEnv, StageExt};
use pollux_pmd::net::UDP_HEADERS;
use pollux_pmd::stream::StreamId;

/// Primitives of a detector that sees something every few slots, or now and then: as many words
/// with the high part of the time as primitives, in an order that cannot be guessed.
fn primitives(c: &mut Criterion) {
    let measure = |c: &mut Criterion| -> Result<(), Error> {
        let mut group = c.benchmark_group("mtp");
        for (name, steps) in [("steady", [7, 7]), ("bursts", [1, 512])] {
            // More packets than a CPU learns by heart.
            let (mut packets, mut primitives, mut random) = (Vec::new(), 0, SEED);
            for _ in 0..64 {
                let mut writer = MtpWriter::new([0; MAX_PACKET], SOURCE_RICH, 0)?;
                let mut timestamp = 1000;
                let mut primitive = || {
                    random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                    timestamp += steps[(random >> 63) as usize];
                    Primitive {
                        id: 0x4000 | (random >> 40) as u16 & 0xff,
                        timestamp,
                        fine: (random >> 32) as u8,
                    }
                };
                while writer.push(primitive()).is_ok() {
                    primitives += 1;
                }
                packets.push(writer.finish());
            }
            group.throughput(Throughput::Elements(primitives));
            for simd in Simd::all() {
                let mut decoded = mtp::Decoded::new(simd);
                let id = BenchmarkId::new(format!("decode, a primitive, {name}"), simd.name());
                group.bench_function(id, |b| {
                    b.iter(|| {
                        for (packet, len) in black_box(&packets) {
                            let _ = black_box(MtpPacket::decode(&packet[..*len], &mut decoded));
                            black_box(decoded.timestamps());
                        }
                    });
                });
            }
        }
        group.finish();
        Ok(())
    };
    report("mtp", measure(c));
}

/// Events of a board whose frames have one to so many edges.
fn edges(c: &mut Criterion) {
    let measure = |c: &mut Criterion| -> Result<(), Error> {
        let mut group = c.benchmark_group("tel62");
        for most in [4, 16] {
            let (mut payloads, mut words, mut random) = (Vec::new(), 0, SEED);
            let mut below = |n: u64| {
                random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                (random >> 33) % n
            };
            for _ in 0..256 {
                let mut edges = Vec::new();
                for (fpga, slot) in
                    (0..4).flat_map(|fpga| (1000..1004).map(move |slot| (fpga, slot)))
                {
                    for i in 0..=below(most) {
                        edges.push(Edge {
                            fpga,
                            tdc: below(4) as u8,
                            channel: below(32) as u8,
                            leading: i % 2 == 0,
                            time: (slot << 8) + i * 8,
                        });
                    }
                }
                let mut payload = vec![0; 2048];
                let len = write_tel62(&mut payload, 0, 1, 1002, &edges)?;
                payload.truncate(len);
                words += len as u64 / 4;
                payloads.push(payload);
            }
            group.throughput(Throughput::Elements(words));
            for simd in Simd::all() {
                let mut decoded = tel62::Decoded::new(simd);
                let name = format!("decode, a word, frames of up to {most} edges");
                group.bench_function(BenchmarkId::new(name, simd.name()), |b| {
                    b.iter(|| {
                        for payload in black_box(&payloads) {
                            let _ = black_box(Tel62::decode(payload, 1002, &mut decoded));
                            black_box(decoded.times());
                        }
                    });
                });
            }
        }
        group.finish();
        Ok(())
    };
    report("tel62", measure(c));
}

fn container(c: &mut Criterion) {
    let measure = |c: &mut Criterion| -> Result<(), Error> {
        let events = events(Rings::Poisson(1.5), 24 * 32)?;
        let containers = containers(&events)?;
        let mut group = c.benchmark_group("hits");
        group.throughput(Throughput::Elements(events.len() as u64));
        for simd in Simd::all() {
            let mut decoded = hits::Decoded::new();
            group.bench_function(BenchmarkId::new("decode, an event", simd.name()), |b| {
                b.iter(|| {
                    for bytes in black_box(&containers) {
                        decoded.clear();
                        let _ = black_box(HitsFrame::decode(bytes, simd, &mut decoded));
                        black_box(decoded.events().len());
                    }
                });
            });
        }
        group.finish();
        Ok(())
    };
    report("hits", measure(c));
}

fn rings(c: &mut Criterion) {
    let measure = |c: &mut Criterion| -> Result<(), Error> {
        let mut group = c.benchmark_group("rings");
        let single = events(Rings::Fixed(1), 1024)?;
        let points: Vec<(Vec<f32>, Vec<f32>)> = single
            .iter()
            .map(|event| {
                let positions = event.hits.iter().map(|hit| POSITIONS[usize::from(hit.pm)]);
                positions.map(|[x, y]| (x, y)).unzip()
            })
            .collect();
        group.throughput(Throughput::Elements(points.len() as u64));
        group.bench_function("single-ring fit", |b| {
            b.iter(|| {
                for (x, y) in &points {
                    black_box(fit::fit(black_box(x), black_box(y)));
                }
            });
        });
        // Each set of instructions beside the others: the results are equal bit by bit.
        let slices: Vec<(&[f32], &[f32])> = points.iter().map(|(x, y)| (&x[..], &y[..])).collect();
        for simd in Simd::all() {
            let mut batch = batch::Batch::new();
            group.bench_function(
                BenchmarkId::new("single-ring fit, 16 events", simd.name()),
                |b| {
                    b.iter(|| {
                        for events in slices.chunks(batch::EVENTS) {
                            batch.fill(black_box(events));
                            black_box(batch.fit(simd));
                        }
                    });
                },
            );
            for rings in [1, 2, 3] {
                let events = noisy_events(Rings::Fixed(rings), 1024)?;
                let mut finder = RingFinder::with_simd(FinderConfig::default(), simd)?;
                let name = format!("find, 16 events, 20 % noise/{rings}");
                group.bench_function(BenchmarkId::new(name, simd.name()), |b| {
                    b.iter(|| {
                        for events in events.chunks(MAX_BATCH) {
                            let hits = events.iter().map(|event| &event.hits[..]);
                            finder.find_batch(black_box(hits));
                        }
                        finder.rings(0).len()
                    });
                });
            }
        }
        for (name, rings) in [
            ("1", Rings::Fixed(1)),
            ("2", Rings::Fixed(2)),
            ("3", Rings::Fixed(3)),
            ("1.5 on average", Rings::Poisson(1.5)),
        ] {
            let events = events(rings, 1024)?;
            let mut finder = RingFinder::new(FinderConfig::default())?;
            group.bench_function(BenchmarkId::new("find", name), |b| {
                b.iter(|| {
                    let mut found = 0;
                    for event in &events {
                        found += black_box(finder.find(black_box(&event.hits))).len();
                    }
                    found
                });
            });
        }
        group.finish();
        Ok(())
    };
    report("rings", measure(c));
}

/// Single hits of four sources into windows: five hits of each source an event.
fn merge(c: &mut Criterion) {
    let measure = |c: &mut Criterion| -> Result<(), Error> {
        let (events, apart) = (1024u64, 4 * SLOT);
        let mut merge = Merge::new(MergeOptions::default())?;
        let when = HitArrival {
            at: Moment(1),
            arrival: Tsc(1),
        };
        let source = |source: u64| -> Vec<StampedHit> {
            let hit = |n: u64, i: u64| StampedHit {
                time: n * apart + 100 + source + i * 3,
                pm: (n * 7 + i * 31 + source * 488) as u16 % 1952,
            };
            (0..events)
                .flat_map(|n| (0..5).map(move |i| hit(n, i)))
                .collect()
        };
        let mut sources: Vec<_> = (0..4).map(source).collect();
        let mut group = c.benchmark_group("merge");
        group.throughput(Throughput::Elements(events));
        group.bench_function("an event of 4 sources with 5 hits each", |b| {
            b.iter(|| {
                // As datagrams bring them: 32 events of each source in turn.
                for piece in 0..events as usize / 32 {
                    for (source, hits) in sources.iter().enumerate() {
                        let hits = &hits[piece * 160..(piece + 1) * 160];
                        let taken = merge.push(source, black_box(hits), when, &mut |window| {
                            black_box(window.hits);
                        });
                        debug_assert_eq!(taken, Ok(()));
                    }
                }
                for hit in sources.iter_mut().flatten() {
                    hit.time += events * apart;
                }
            });
        });
        group.finish();
        let counts = merge.counts();
        if counts.late + counts.ahead + counts.skewed + counts.full + counts.forced > 0 {
            return Err(format!("{counts:?}").into());
        }
        Ok(())
    };
    report("merge", measure(c));
}

fn env() -> StageEnv {
    stage_env(BOARDS.into())
}

/// Buffers with the fragments of all boards: those of a frame, [`BUNCH`] of them, one behind another.
fn fragments(
    cache: &mut PoolCache,
    events: &[[Vec<Hit>; BOARDS as usize]],
    first: u64,
) -> Option<Batch<Fragments>> {
    let mut batch = Batch::with_capacity(events.len());
    for (bunch, events) in (0..).zip(events.chunks(BUNCH as usize)) {
        let mut fragments = Fragments::new(cache)?;
        for source in 0..BOARDS.into() {
            for (n, boards) in (0..).zip(events) {
                let number = first + bunch * BUNCH + n;
                let pushed = fragments.push(&Fragment {
                    timestamp: number * STEP,
                    source,
                    ends_frame: n + 1 == events.len() as u64,
                    lost: 0,
                    reordered: false,
                    at: Moment((first + bunch * BUNCH) * 1000),
                    arrival: Tsc(1),
                    hits: &boards[usize::from(source)],
                });
                pushed.then_some(())?;
            }
        }
        batch.push(fragments).ok()?;
    }
    Some(batch)
}

/// Fragments of all boards into events.
fn build(c: &mut Criterion) {
    let measure = |c: &mut Criterion| -> Result<(), Error> {
        let emulated =
            |event: &TruthEvent| [0, 1, 2, 3].map(|board| event.board_hits(board, BOARDS).to_vec());
        let five = |n: u16| {
            let hit = |i: u16, board: u16| Hit {
                pm: (n * 7 + i * 31 + board * 488) % 1952,
                fine: i,
            };
            [0, 1, 2, 3].map(|board| (0..5).map(|i| hit(i, board)).collect())
        };
        let mut group = c.benchmark_group("stages");
        group.throughput(Throughput::Elements(10 * BUNCH));
        for (name, events) in [
            (
                "build, an event of 4 fragments",
                events(Rings::Poisson(1.5), 10 * BUNCH)?
                    .iter()
                    .map(emulated)
                    .collect::<Vec<_>>(),
            ),
            (
                "build, an event of 4 sources with 5 hits each",
                (0..10 * BUNCH as u16).map(five).collect(),
            ),
        ] {
            let mut env = env();
            let mut stage = Build::new(&BuildOptions::default(), &mut env)?;
            let mut free = free_events(&env)?;
            let mut cache = fragment_pool(16, PoolConfig::default())?.cache(16)?;
            let (mut first, mut failed) = (0, false);
            group.bench_function(name, |b| {
                b.iter_custom(|rounds| {
                    let mut spent = Duration::ZERO;
                    for _ in 0..rounds {
                        let Some(mut batch) = fragments(&mut cache, &events, first) else {
                            failed = true;
                            break;
                        };
                        first += 10 * BUNCH;
                        let start = Instant::now();
                        stage.process(&mut batch, &mut Each(&mut free));
                        spent += start.elapsed();
                        for fragments in batch.drain() {
                            cache.free(fragments.into());
                        }
                    }
                    spent
                });
            });
            if failed {
                return Err("fragments that do not fit".into());
            }
            complete(&env)?;
        }
        group.finish();
        Ok(())
    };
    report("build", measure(c));
}

/// Frames in buffers, whose numbers and times advance from round to round.
struct Source {
    frames: Batch<Frame>,
    /// Events in all frames, each counted once.
    events: u64,
    /// Frames of one board.
    bunches: u32,
}

impl Source {
    fn new() -> Result<Self, Error> {
        let events = events(Rings::Poisson(1.5), 24 * 32)?;
        let containers = containers(&events)?;
        let mut cache = pool(1024)?.cache(256)?;
        let mut frames = Batch::with_capacity(containers.len());
        for (n, container) in (0..).zip(&containers) {
            let frame = Frame {
                mbuf: cache
                    .alloc_from(&frame(7500, container))
                    .ok_or("the pool is empty")?,
                stream: StreamId(container[6].into()),
                offset: UDP_HEADERS as u16,
                len: container.len() as u16,
                at: Moment(n * 6000),
            };
            frames.push(frame).map_err(|_| "the batch is full")?;
        }
        let bunches = containers.len() as u32 / u32::from(BOARDS);
        Ok(Self {
            frames,
            events: events.len() as u64,
            bunches,
        })
    }

    /// Adds to the sequence number (bytes 8 to 11) and the first time stamp (16 to 23).
    fn advance(&mut self) {
        for frame in self.frames.as_mut_slice() {
            let payload = &mut frame.mbuf.data_mut()[UDP_HEADERS..];
            let mut sequence = [0; 4];
            sequence.copy_from_slice(&payload[8..12]);
            let sequence = u32::from_le_bytes(sequence).wrapping_add(self.bunches);
            payload[8..12].copy_from_slice(&sequence.to_le_bytes());
            let mut timestamp = [0; 8];
            timestamp.copy_from_slice(&payload[16..24]);
            let timestamp = u64::from_le_bytes(timestamp) + self.events * STEP;
            payload[16..24].copy_from_slice(&timestamp.to_le_bytes());
            frame.at.0 += self.events * 1000;
        }
    }
}

/// Takes events back.
fn free_events<E: Into<Mbuf>>(env: &StageEnv) -> Result<impl FnMut(E) + use<E>, Error> {
    let pool = env
        .get::<L0Env>()?
        .events
        .as_ref()
        .ok_or("no stage builds events")?;
    let mut cache = pool.cache(EVENT_CACHE)?;
    Ok(move |event: E| cache.free(black_box(event).into()))
}

/// Measures a chain from frames in buffers to whatever it makes, which `done` takes.
fn chain<S: Stage<In = Frame>>(
    c: &mut Criterion,
    name: &str,
    mut stage: S,
    mut done: impl FnMut(S::Out),
) -> Result<(), Error> {
    let mut source = Source::new()?;
    let mut group = c.benchmark_group("chain");
    group.throughput(Throughput::Elements(source.events));
    group.bench_function(name, |b| {
        b.iter(|| {
            stage.process(&mut source.frames, &mut Each(&mut done));
            source.advance();
        });
    });
    group.finish();
    Ok(())
}

fn chains(c: &mut Criterion) {
    let mut measure = || -> Result<(), Error> {
        let decompress = |env: &mut StageEnv| Decompress::new(&DecompressOptions::default(), env);
        let build = |env: &mut StageEnv| Build::new(&BuildOptions::default(), env);

        let stage = decompress(&mut env())?;
        chain(c, "decompress", stage, |fragments| {
            black_box(&fragments);
        })?;
        let mut both = env();
        let stage = decompress(&mut both)?.then(build(&mut both)?);
        chain(c, "decompress, build", stage, free_events(&both)?)?;
        complete(&both)?;
        let mut all = env();
        let stage = decompress(&mut all)?
            .then(build(&mut all)?)
            .then(FindRings::new(FinderConfig::default())?)
            .then(Decide::new(&DecideOptions::default(), &mut all)?);
        let name = "decompress, build, rings, decide";
        chain(c, name, stage, free_events(&all)?)?;
        complete(&all)
    };
    report("chain", measure());
}

/// What was measured was the work on good events.
fn complete(env: &StageEnv) -> Result<(), Error> {
    let stats = Arc::clone(&env.get::<L0Env>()?.stats);
    let (built, complete) = (stats.events.built.get(), stats.events.complete.get());
    if built == complete && env.ledger.balance().dropped_total() == 0 {
        return Ok(());
    }
    Err(format!("{complete} of {built} events were complete").into())
}

criterion_group! { name = benches; config = settings(); targets = primitives, edges, container, rings, merge, build, chains }
criterion_main!(benches);
