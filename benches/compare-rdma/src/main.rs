//! Peers of remote memory access: what `scripts/compare-rdma` compares `pollux rdma bench` with.
//!
//! Each run measures one thing for a time, and prints it. `put-shm` alone has both sides, in turns, since
//! they use the same buffers.

mod frames;
mod line;
mod put;
mod sockets;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};
use pollux_pmd::LatencyView;
use serde_json::json;

/// Measures peers of remote memory access. See scripts/compare-rdma.
#[derive(Parser)]
struct Options {
    /// CPU of the side that measures, and of the other one
    #[arg(long, value_name = "A,B", value_delimiter = ',', required = true)]
    cores: Vec<usize>,
    /// Bytes of a transfer
    #[arg(long, value_name = "N")]
    bytes: usize,
    /// Duration of each turn
    #[arg(long, value_name = "S", default_value_t = 0.5)]
    seconds: f64,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// PUT over shared memory, and memcpy between the same buffers, by turns: GB/s
    PutShm {
        /// Turns of each side
        #[arg(long, default_value_t = 5)]
        rounds: usize,
    },
    /// A cache line to and fro: round trip in ns
    Line,
    /// Frames of 4096 B without protocol, copied in and out, a CRC each side: Gb/s
    Frames,
    /// Receives what a sender sends over TCP: Gb/s
    TcpReceive { at: SocketAddr },
    /// Sends to a receiver over TCP, until it has enough
    TcpSend { at: SocketAddr },
    /// Answers datagrams until it is ended
    UdpAnswer { at: SocketAddr },
    /// Exchanges datagrams with the one that answers: round trip in ns
    UdpAsk { at: SocketAddr },
}

fn main() -> Result<()> {
    let options = Options::parse();
    let &[core, other] = &options.cores[..] else {
        bail!("--cores: give two, A,B");
    };
    let (bytes, time) = (options.bytes, Duration::try_from_secs_f64(options.seconds)?);
    let found = match options.what {
        What::PutShm { rounds } => {
            let [ours, peer] = put::measure(core, bytes, time, rounds)?;
            json!({ "ours": ours, "peer": peer })
        }
        What::Line => trip(&line::measure((core, other), time)?),
        What::Frames => json!(frames::measure((core, other), bytes, time)?),
        What::TcpReceive { at } => json!(sockets::receive(core, at, bytes, time)?),
        What::TcpSend { at } => json!(sockets::send(core, at, bytes)?),
        What::UdpAnswer { at } => json!(sockets::answer(core, at)?),
        What::UdpAsk { at } => trip(&sockets::ask(core, at, bytes, time)?),
    };
    println!("{found}");
    Ok(())
}

/// The median of round trips, as `pollux rdma bench` reports it.
fn trip(trips: &LatencyView) -> serde_json::Value {
    json!(trips.percentiles().p50)
}
