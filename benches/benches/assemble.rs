//! The frame assembler, one core: packets of 8 KiB into frames of 1 MiB, behind no port.
#![allow(missing_docs)]

use std::hint::black_box;

use criterion::{Throughput, criterion_group, criterion_main};
use pollux_benches::{Criterion, Error, report, settings};
use pollux_pipelines::Moment;
use pollux_pipelines::assemble::{AssembleConfig, Part, assembler};

const PACKETS: usize = 128;
const BYTES: usize = 8192;
const HEADER: usize = 48;

fn assemble(c: &mut Criterion) {
    let measure = |c: &mut Criterion| -> Result<(), Error> {
        let mut group = c.benchmark_group("assemble");
        group.throughput(Throughput::Elements(PACKETS as u64));
        let (mut placer, mut reader) = assembler(AssembleConfig {
            packets: PACKETS,
            packet_bytes: BYTES,
            header_bytes: HEADER,
            ..AssembleConfig::default()
        })?;
        let packets = vec![[7; HEADER + BYTES]; PACKETS];
        let mut key = 0;
        let mut failed = false;
        group.bench_function("packets of 8 KiB into a frame of 128", |b| {
            b.iter(|| {
                for (packet, bytes) in packets.iter().enumerate() {
                    let (header, data) = bytes.split_at(HEADER);
                    let at = Moment(key * 500_000);
                    let part = Part {
                        key,
                        sender: 0,
                        packet,
                        at,
                        header,
                        data,
                    };
                    failed |= placer.place(black_box(&part)).is_err();
                }
                key += 1;
                let frame = reader.poll(Moment(key * 500_000));
                failed |= !frame.is_some_and(|frame| black_box(frame).is_complete());
            });
        });
        group.finish();
        if failed {
            Err("a frame that is not complete".into())
        } else {
            Ok(())
        }
    };
    report("assemble", measure(c));
}

criterion_group! { name = benches; config = settings(); targets = assemble }
criterion_main!(benches);
