//! What the benchmarks share: how they are measured, and the data that they are fed.
//!
//! Each benchmark is one core's work on real data: events of the emulated detector, frames with
//! headers. `cargo bench` runs them all, `cargo bench -- --quick` in a minute or two; the figures
//! are in docs/performance.md.

pub mod chain;
mod time;
pub mod witness;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use pollux_mempool::{Mempool, PoolConfig};
use pollux_na62::formats::hits::{HitsWriter, MAX_FRAME};
use pollux_na62::formats::mtp::SOURCE_RICH;
use pollux_na62::physics::model::{EventModel, ModelConfig, Rings, TruthEvent};
use pollux_pmd::net::{MacAddr, UDP_HEADERS, UdpEndpoint, UdpTemplate};
use pollux_pmd::{MemoryGrant, PortConfig, Registry, StartedPort};

pub use self::time::Time;

/// Measures, and says how many cycles an element takes.
pub type Criterion = criterion::Criterion<Time>;

/// Why a benchmark cannot be set up.
pub type Error = Box<dyn std::error::Error>;

/// Readout boards that share the emulated detector.
pub const BOARDS: u8 = 4;

/// Slots from one event to the next: a million events a second.
pub const STEP: u64 = 40;

/// Events in a frame: as many as fit one of each board.
pub const BUNCH: u64 = 24;

/// Seed of all emulated events.
pub const SEED: u64 = 20_260_101;

/// Long enough for the frequency to settle, short enough that all benchmarks take two minutes.
/// The machine's jitter is printed beside.
#[must_use]
pub fn settings() -> Criterion {
    println!("{}", time::jitter());
    criterion::Criterion::default()
        .with_measurement(Time)
        .sample_size(30)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1500))
}

/// So many events of the emulated detector.
///
/// # Errors
/// What the emulator has against the number of rings.
pub fn events(rings: Rings, count: u64) -> Result<Vec<TruthEvent>, Error> {
    emulate(
        ModelConfig {
            rings,
            ..ModelConfig::default()
        },
        count,
    )
}

/// The same with twice the noise: a hit of it for five of the rings.
///
/// # Errors
/// As [`events`].
pub fn noisy_events(rings: Rings, count: u64) -> Result<Vec<TruthEvent>, Error> {
    emulate(
        ModelConfig {
            rings,
            noise: 0.2,
            ..ModelConfig::default()
        },
        count,
    )
}

fn emulate(config: ModelConfig, count: u64) -> Result<Vec<TruthEvent>, Error> {
    let model = EventModel::new(config)?;
    let make = |n| {
        let mut event = TruthEvent::default();
        model.event(SEED, n, &mut event);
        event
    };
    Ok((0..count).map(make).collect())
}

/// The frames of all boards with `events`, [`BUNCH`] in each.
///
/// # Errors
/// Events that do not fit.
pub fn containers(events: &[TruthEvent]) -> Result<Vec<Vec<u8>>, Error> {
    let mut frames = Vec::new();
    // An event leaves less than 40 bytes at a board but in one case of a thousand.
    for (n, events) in (0..).zip(events.chunks(BUNCH as usize)) {
        for board in 0..BOARDS {
            let mut writer = HitsWriter::new(vec![0; MAX_FRAME], SOURCE_RICH, board, n)?;
            for (i, event) in (0..).zip(events) {
                let timestamp = (u64::from(n) * BUNCH + i) * STEP;
                writer.push(timestamp, event.board_hits(board, BOARDS))?;
            }
            let (mut bytes, len) = writer.finish();
            bytes.truncate(len);
            frames.push(bytes);
        }
    }
    Ok(frames)
}

/// A pool of so many buffers of the default size.
///
/// # Errors
/// Memory that cannot be had.
pub fn pool(buffers: usize) -> Result<Mempool, Error> {
    Ok(Mempool::new(PoolConfig {
        buffers,
        ..PoolConfig::default()
    })?)
}

/// The drivers of the benchmarks.
#[must_use]
pub fn registry() -> Registry {
    // SAFETY: the ports are in this process, or the operator has named them, and vouches for them
    // with that (docs/operations.md).
    Registry::builtin().granting(unsafe { MemoryGrant::new() })
}

/// A started port with one queue each way.
///
/// # Errors
/// What the driver refuses.
pub fn port(spec: &str, pool: &Mempool) -> Result<StartedPort, Error> {
    let port = registry().open(spec)?;
    Ok(port.configure(PortConfig::new(pool.clone()))?.start()?)
}

/// A frame to a UDP port: headers, checksums and payload.
#[must_use]
pub fn frame(port: u16, payload: &[u8]) -> Vec<u8> {
    let end = |last, port| UdpEndpoint {
        mac: MacAddr([2, 0, 0, 0, 0, last]),
        socket: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, last), port),
    };
    let mut frame = vec![0; UDP_HEADERS];
    frame.extend(payload);
    // It is as long as was asked for, so it is written.
    let written = UdpTemplate::new(end(1, 4000), end(2, port)).write(&mut frame, payload.len());
    debug_assert_eq!(written, Some(frame.len()));
    frame
}

/// Ends the run with a message if a benchmark could not be set up or did not do its work.
///
/// # Panics
/// On an error: a benchmark has no caller to return it to.
#[allow(clippy::panic)]
pub fn report(name: &str, result: Result<(), Error>) {
    if let Err(error) = result {
        panic!("{name}: {error}");
    }
}
