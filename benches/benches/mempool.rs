//! Pools and rings, one core, both halves of an exchange: buffers or items a second.
#![allow(missing_docs)]

use std::hint::black_box;
use std::mem::MaybeUninit;

use criterion::{BenchmarkGroup, BenchmarkId, Throughput, criterion_group, criterion_main};
use pollux_benches::{Criterion, Error, Time, pool, report, settings};
use pollux_mempool::ring::{Mpmc, spsc};
use pollux_mempool::{Burst, Mempool, PoolCache};

type Group<'a> = BenchmarkGroup<'a, Time>;

fn allocate(c: &mut Criterion) {
    let mut group = c.benchmark_group("pool");
    let mut measure = || -> Result<(), Error> {
        let pool = pool(8192)?;
        let mut cache = pool.cache(512)?;
        cached::<1>(&mut group, &mut cache);
        cached::<8>(&mut group, &mut cache);
        cached::<32>(&mut group, &mut cache);
        uncached::<1>(&mut group, &pool);
        uncached::<8>(&mut group, &pool);
        uncached::<32>(&mut group, &pool);
        Ok(())
    };
    report("mempool", measure());
    group.finish();
}

fn cached<const N: usize>(group: &mut Group, cache: &mut PoolCache) {
    let mut burst = Burst::<N>::new();
    group.throughput(Throughput::Elements(N as u64));
    group.bench_function(BenchmarkId::new("cached", N), |b| {
        b.iter(|| {
            cache.alloc_burst(&mut burst, N);
            black_box(&mut burst);
            cache.free_burst(&mut burst);
            black_box(&mut *cache);
        });
    });
}

/// Straight from the free list, and back one by one, as dropped buffers go.
fn uncached<const N: usize>(group: &mut Group, pool: &Mempool) {
    let mut burst = Burst::<N>::new();
    group.throughput(Throughput::Elements(N as u64));
    group.bench_function(BenchmarkId::new("uncached", N), |b| {
        b.iter(|| {
            pool.alloc_burst(&mut burst, N);
            black_box(&mut burst);
            burst.clear();
        });
    });
}

fn exchange(c: &mut Criterion) {
    let mut group = c.benchmark_group("ring");
    let mut measure = || -> Result<(), Error> {
        spsc::<1>(&mut group)?;
        spsc::<8>(&mut group)?;
        spsc::<32>(&mut group)?;
        mpmc::<1>(&mut group)?;
        mpmc::<8>(&mut group)?;
        mpmc::<32>(&mut group)
    };
    report("mempool", measure());
    group.finish();
}

fn spsc<const N: usize>(group: &mut Group) -> Result<(), Error> {
    let (mut producer, mut consumer) = spsc::channel::<u64>(1024)?;
    let (items, mut out) = ([7; N], [MaybeUninit::uninit(); N]);
    group.throughput(Throughput::Elements(N as u64));
    group.bench_function(BenchmarkId::new("spsc", N), |b| {
        b.iter(|| {
            let pushed = producer.push_bulk(black_box(&items));
            let popped = consumer.pop_bulk(&mut out);
            black_box(&mut out);
            black_box(pushed & popped)
        });
    });
    Ok(())
}

fn mpmc<const N: usize>(group: &mut Group) -> Result<(), Error> {
    let ring = Mpmc::<u64>::new(1024)?;
    let (items, mut out) = ([7; N], [MaybeUninit::uninit(); N]);
    group.throughput(Throughput::Elements(N as u64));
    group.bench_function(BenchmarkId::new("mpmc", N), |b| {
        b.iter(|| {
            let pushed = ring.push_bulk(black_box(&items));
            let popped = ring.pop_bulk(&mut out);
            black_box(&mut out);
            black_box(pushed & popped)
        });
    });
    Ok(())
}

criterion_group! { name = benches; config = settings(); targets = allocate, exchange }
criterion_main!(benches);
