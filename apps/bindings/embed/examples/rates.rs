//! Loops of `pollux-embed` that scripts compare with those of Python and C.
//!
//! usage: rates columns SPEC SECONDS | rates free SPEC ROUNDS
//!
//! `columns` takes three columns and one field of each batch, as scripts/lib/python/columns.py does;
//! `free` receives bursts of 32 and frees them, as apps/bindings/c/tests/c/free.c does. Prints the
//! number of datagrams, and the seconds.

use std::env::args;
use std::error::Error;
use std::time::{Duration, Instant};

use pollux_embed::{Datagram, EmbeddedPort, Frames, Options};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<_> = args().skip(1).collect();
    let [mode, spec, amount] = words.as_slice() else {
        return Err("usage: rates columns SPEC SECONDS | rates free SPEC ROUNDS".into());
    };
    let options = Options {
        data_room: Some(2048),
        ..Options::default()
    };
    let mut port = EmbeddedPort::open(spec, &options)?;
    let started = Instant::now();
    let datagrams = if mode == "columns" {
        columns(&mut port, Duration::from_secs_f64(amount.parse()?))
    } else {
        free(&mut port, amount.parse()?)
    };
    let seconds = started.elapsed().as_secs_f64();
    println!("{datagrams} {seconds}");
    port.close()?;
    Ok(())
}

/// Batches of up to 256 datagrams. Their buffers are freed when the next batch is there, as in Python.
fn columns(port: &mut EmbeddedPort, time: Duration) -> u64 {
    let started = Instant::now();
    let (mut count, mut sum) = (0, 0_u64);
    let mut before: Vec<Datagram> = Vec::new();
    while started.elapsed() < time && !port.has_ended() {
        let mut batch = Vec::with_capacity(256);
        port.rx(256, |datagram| batch.push(datagram));
        for datagram in std::mem::replace(&mut before, batch) {
            port.free(datagram.into_mbuf());
        }
        let ports: Vec<u16> = before.iter().map(Datagram::dst_port).collect();
        let lengths = before
            .iter()
            .map(|datagram| datagram.payload().len() as u32);
        let lengths: Vec<u32> = lengths.collect();
        let stamps = before.iter().map(Datagram::wire_time);
        let stamps: Vec<u64> = stamps.map(|time| time.unwrap_or_default().0).collect();
        let field = |datagram: &Datagram| {
            let bytes = datagram.payload().get(8..).and_then(<[u8]>::first_chunk);
            bytes.copied().map_or(0, u64::from_le_bytes)
        };
        let fields: Vec<u64> = before.iter().map(field).collect();
        let last = (ports.last(), lengths.last(), stamps.last(), fields.last());
        if let (Some(&port), Some(&length), Some(&stamp), Some(&field)) = last {
            sum ^= u64::from(port) ^ u64::from(length) ^ stamp ^ field;
        }
        count += before.len() as u64;
    }
    std::hint::black_box(sum);
    count
}

/// Bursts of 32, as many as `rounds`.
fn free(port: &mut EmbeddedPort, rounds: u64) -> u64 {
    let (mut count, mut bytes) = (0, 0);
    for _ in 0..rounds {
        let mut burst = Frames::new();
        count += port.rx(32, |datagram| {
            bytes += datagram.payload().len();
            drop(burst.push(datagram.into_mbuf()));
        }) as u64;
        port.free_all(&mut burst);
    }
    std::hint::black_box(bytes);
    count
}
