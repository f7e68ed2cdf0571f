//! Frames of readout boards, valid and corrupted, early and late, through the whole chain of the
//! trigger. Each frame has one outcome, each event has one decision, and all buffers return to the
//! pool.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pollux_mempool::region::PageSize;
use pollux_mempool::time::Tsc;
use pollux_mempool::{Mempool, PoolConfig};
use pollux_na62::formats::hits::{HitsWriter, MAX_FRAME};
use pollux_na62::formats::mtp::SOURCE_RICH;
use pollux_na62::l0::{Decision, Frame};
use pollux_na62::rich::Hit;
use pollux_na62::rich::find::FinderConfig;
use pollux_na62::stages::{
    Build, BuildOptions, Decide, DecideOptions, Decompress, DecompressOptions, FindRings,
};
use pollux_na62::{L0Env, stage_env};
use pollux_pipelines::{Batch, Each, Moment, Stage, StageExt};
use pollux_pmd::stream::StreamId;

const SOURCES: usize = 3;

thread_local! {
    // Buffers so short that containers span several segments.
    static POOL: Mempool = Mempool::new(PoolConfig {
        buffers: 64,
        data_room: 64,
        pages: PageSize::Kib4,
        ..PoolConfig::default()
    })
    .expect("memory for a small pool");
}

/// A container of a few events, determined by `data`: time steps, numbers of hits.
fn container(board: u8, sequence: u32, start: u64, data: &[u8]) -> Vec<u8> {
    let mut writer = HitsWriter::new(vec![0; MAX_FRAME], SOURCE_RICH, board, sequence)
        .expect("room for a header");
    let mut timestamp = start;
    for event in data.chunks(4) {
        let step = event.first().map_or(0, |&step| u64::from(step % 64));
        let pms = event.iter().map(|&byte| u16::from(byte) * 7);
        let mut hits: Vec<_> = pms.map(|pm| Hit { pm, fine: pm % 256 }).collect();
        hits.sort_by_key(|hit| hit.pm);
        hits.dedup_by_key(|hit| hit.pm);
        timestamp += step;
        // The first event that does not fit ends the container.
        if writer.push(timestamp, &hits).is_err() {
            break;
        }
        timestamp += 1;
    }
    let (mut bytes, len) = writer.finish();
    bytes.truncate(len);
    bytes
}

fn trigger(mut data: &[u8], pool: &Mempool) {
    let mut env = stage_env(SOURCES);
    env.under_way = 0;
    env.memory = PoolConfig {
        pages: PageSize::Kib4,
        ..PoolConfig::default()
    };
    let options = BuildOptions {
        max_open: 8,
        ..BuildOptions::default()
    };
    let decompress = Decompress::new(&DecompressOptions::default(), &mut env);
    let build = Build::new(&options, &mut env).expect("valid options");
    let rings = FindRings::new(FinderConfig::default()).expect("valid options");
    let decide = Decide::new(&DecideOptions::default(), &mut env).expect("valid options");
    let mut chain = decompress
        .expect("valid options")
        .then(build)
        .then(rings)
        .then(decide);

    let mut cache = pool.cache(8).expect("a cache");
    let (mut batch, mut decided) = (Batch::with_capacity(4), 0);
    // Each returns to the event pool at once.
    let mut out = Each(|_: Decision| decided += 1);
    let (mut frames, mut now) = (0, 0);
    let mut sequences = [0; 256];
    while let [op, board, start, fault, len, rest @ ..] = data {
        let (body, rest) = rest.split_at(usize::from(*len).min(rest.len()));
        data = rest;
        let sequence: &mut u32 = &mut sequences[usize::from(*board)];
        let mut bytes = match op % 4 {
            0 => body.to_vec(),
            _ => container(*board, *sequence, u64::from(*start), body),
        };
        *sequence = sequence.wrapping_add(u32::from(*op >> 6));
        if op % 4 == 1
            && let Some(byte) = bytes.get_mut(usize::from(*fault))
        {
            *byte ^= op >> 2;
        }
        now += u64::from(*fault) * 10_000;
        if let Some(mut mbuf) = cache.alloc_from(&bytes) {
            mbuf.set_arrival(Tsc(now));
            let frame = Frame {
                mbuf,
                stream: StreamId(bytes.get(6).map_or(0, |&board| u16::from(board))),
                offset: 0,
                len: bytes.len() as u16,
                at: Moment(now),
            };
            frames += 1;
            assert!(
                batch.push(frame).is_ok(),
                "a batch is emptied when it is full"
            );
        }
        if batch.is_full() || op % 8 == 0 {
            chain.process(&mut batch, &mut out);
            batch.clear();
            chain.tick(Moment(now), &mut out);
        }
    }
    chain.process(&mut batch, &mut out);
    drop(batch);
    chain.finish(&mut out);

    let balance = env.ledger.balance();
    assert_eq!(
        balance.delivered + balance.dropped_total(),
        frames,
        "{balance:?}"
    );
    let events = &env
        .get::<L0Env>()
        .expect("there from the start")
        .stats
        .events;
    assert_eq!(events.built.get(), decided);
    assert_eq!(
        events.built.get(),
        events.complete.get() + events.incomplete.get()
    );
    assert_eq!(
        events.built.get(),
        events.accepted.get() + events.rejected.get()
    );
}

fuzz_target!(|data: &[u8]| {
    POOL.with(|pool| {
        trigger(data, pool);
        assert_eq!(pool.available(), pool.buffers());
    });
});
