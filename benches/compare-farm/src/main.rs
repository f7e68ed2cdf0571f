//! The farm on kernel sockets, for scripts/compare-farm: the roles of `pollux-farm`, as many members
//! and the same work for an event as in `farm run`, with datagrams of the kernel as the carrier of
//! their messages.

mod members;
mod room;
mod share;
mod sockets;

use std::sync::Arc;

use anyhow::{Result, ensure};
use clap::Parser;
use pollux_farm::topology::Topology;
use pollux_pmd::lcore::{self, Lcore};
use pollux_pmd::{Clock as _, TscClock};
use serde_json::json;

use self::members::{Control, Members, Outcome};
use self::share::Share;
use self::sockets::{Sockets, links};

/// Runs the farm on kernel sockets; prints what it did as JSON
#[derive(Parser)]
struct Args {
    /// Events
    #[arg(long, default_value_t = 100_000)]
    events: u64,

    /// Events that are scheduled and transferred together
    #[arg(long, default_value_t = 1)]
    pack: u16,

    /// Bytes of a fragment
    #[arg(long, default_value_t = 128)]
    fragment: u32,

    #[arg(long, default_value_t = 24)]
    feeders: usize,

    #[arg(long, default_value_t = 12)]
    nodes: usize,

    #[arg(long, default_value_t = 6)]
    columns: usize,

    /// Receive buffers of each node
    #[arg(long, default_value_t = 10)]
    buffers: usize,

    /// Send every message as a datagram, those between members of one loop too
    #[arg(long)]
    all_datagrams: bool,

    /// CPUs of the loops
    #[arg(long, value_delimiter = ',', required = true)]
    cores: Vec<usize>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let topology = Topology::regular(args.feeders, args.columns, args.nodes, args.buffers)?;
    ensure!(
        (1..=64).contains(&args.pack),
        "--pack {}: 1 to 64 events",
        args.pack
    );
    let loops = args.cores.len();
    let control = Arc::new(Control::default());
    let clock = TscClock::get();
    let start = clock.now();
    let mut threads: Vec<Lcore<Result<Outcome>>> = Vec::new();
    for (number, links) in links(loops)?.into_iter().enumerate() {
        let (control, topology) = (Arc::clone(&control), topology.clone());
        let share = Share {
            number,
            loops,
            events: args.events,
            pack: args.pack,
            fragment: args.fragment,
            hands_over: !args.all_datagrams,
        };
        let body = move || {
            let carrier = Sockets::new(links, &topology, &share)?;
            let mut members = Members::new(&share, &topology, carrier, control)?;
            members.run(clock, start)?;
            Ok(members.outcome())
        };
        threads.push(lcore::launch("loop", Some(args.cores[number]), body)?);
    }
    let mut sum = Outcome::default();
    for thread in threads {
        sum.add(&thread.join()??);
    }
    let Outcome {
        triggered,
        decided,
        incomplete,
        in_order,
        checked,
        wrong,
        resent,
        datagrams,
        calls,
        duration,
    } = sum;
    let seconds = duration.ps() as f64 / 1e12;
    let report = json!({
        "triggered": triggered, "decided": decided, "incomplete": incomplete, "in_order": in_order,
        "checked": checked, "wrong": wrong, "resent": resent, "datagrams": datagrams, "calls": calls,
        "rate_hz": decided as f64 / seconds,
    });
    println!("{report}");
    ensure!(
        triggered == args.events && decided == triggered && in_order,
        "{decided} of {} events were decided",
        args.events
    );
    let fragments = args.events * args.feeders as u64;
    ensure!(
        checked == fragments && wrong == 0,
        "of {fragments} fragments {checked} arrived, {wrong} of them wrong"
    );
    Ok(())
}
