//! Ports and streams, one core: frames a second.
#![allow(missing_docs)]

use std::hint::black_box;

use criterion::{BenchmarkId, Throughput, criterion_group, criterion_main};
use pollux_benches::{Criterion, Error, frame, pool, port, report, settings};
use pollux_mempool::Burst;
use pollux_pmd::StartedPort;
use pollux_pmd::net::{ParseOptions, Parsed, parse};
use pollux_pmd::stream::{DemuxBuilder, StreamId};

const BURST: usize = 32;

/// A burst sent and received.
fn ports(c: &mut Criterion) {
    report("port", loopback(c).and_then(|()| null(c)));
}

fn loopback(c: &mut Criterion) -> Result<(), Error> {
    let pool = pool(4096)?;
    let StartedPort { mut rx, mut tx, .. } = port("loopback", &pool)?;
    let (rx, tx) = (&mut rx[0], &mut tx[0]);
    let mut cache = pool.cache(512)?;
    let mut burst = Burst::<BURST>::new();
    cache.alloc_burst(&mut burst, BURST);
    for mbuf in burst.iter_mut() {
        mbuf.append(60)
            .ok_or("no room")?
            .copy_from_slice(&frame(7500, &[0x5a; 18]));
    }
    let mut group = c.benchmark_group("port");
    group.throughput(Throughput::Elements(BURST as u64));
    group.bench_function(BenchmarkId::new("loopback tx+rx", BURST), |b| {
        b.iter(|| {
            let sent = tx.tx(&mut cache, &mut burst);
            let received = rx.rx(&mut cache, &mut burst);
            black_box(&mut burst);
            black_box(sent + received)
        });
    });
    group.finish();
    Ok(())
}

/// Receives blank frames and frees them: buffers move, bytes do not.
fn null(c: &mut Criterion) -> Result<(), Error> {
    let pool = pool(4096)?;
    let StartedPort { mut rx, mut tx, .. } = port("null", &pool)?;
    let (rx, tx) = (&mut rx[0], &mut tx[0]);
    let mut cache = pool.cache(512)?;
    let mut burst = Burst::<BURST>::new();
    let mut group = c.benchmark_group("port");
    group.throughput(Throughput::Elements(BURST as u64));
    group.bench_function(BenchmarkId::new("null rx+tx", BURST), |b| {
        b.iter(|| {
            let received = rx.rx(&mut cache, &mut burst);
            black_box(&mut burst);
            let sent = tx.tx(&mut cache, &mut burst);
            black_box(sent + received)
        });
    });
    group.finish();
    Ok(())
}

/// From the bytes of a frame to its stream, which is counted.
fn demux(c: &mut Criterion) {
    let mut measure = |name: &str, payload: usize, options: ParseOptions| -> Result<(), Error> {
        let mut group = c.benchmark_group("demux");
        for streams in [4u16, 1000] {
            let route = |builder: DemuxBuilder, n| builder.port(5000 + n, StreamId(n));
            let mut demux = (0..streams).fold(DemuxBuilder::new(), route).build()?;
            // Streams in no order that a branch predictor could learn.
            let port = |n: u32| 5000 + (n.wrapping_mul(2_654_435_769) >> 16) as u16 % streams;
            let frames: Vec<_> = (0..1024)
                .map(|n| frame(port(n), &vec![n as u8; payload]))
                .collect();
            group.throughput(Throughput::Elements(frames.len() as u64));
            group.bench_function(BenchmarkId::new(name, streams), |b| {
                b.iter(|| {
                    let mut streams = 0;
                    for frame in black_box(&frames) {
                        if let Ok(Parsed::Udp(udp)) = parse(frame, frame.len(), &options) {
                            streams += demux.route(&udp).map_or(0, |id| u64::from(id.0));
                        }
                    }
                    black_box(streams)
                });
            });
        }
        group.finish();
        Ok(())
    };
    report("demux", measure("headers, 64 B", 18, ParseOptions::TRUSTED));
    report(
        "demux",
        measure("with checksums, 64 B", 18, ParseOptions::default()),
    );
    report(
        "demux",
        measure("with checksums, 1500 B", 1472, ParseOptions::default()),
    );
}

criterion_group! { name = benches; config = settings(); targets = ports, demux }
criterion_main!(benches);
