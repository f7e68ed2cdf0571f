//! Measures the card from its RTL: cycles, line rate, latency, and a soak. Prints JSON;
//! `scripts/cosim` runs it, and interprets the results.

#[cfg(not(has_verilator))]
fn main() {
    println!("skipped: no simulated card: apt-get install verilator, and build again");
}

#[cfg(has_verilator)]
mod cycles;
#[cfg(has_verilator)]
mod judge;
#[cfg(has_verilator)]
mod latency;
#[cfg(has_verilator)]
mod line_rate;
#[cfg(has_verilator)]
mod sched;
#[cfg(has_verilator)]
mod soak;

#[cfg(has_verilator)]
fn main() -> anyhow::Result<()> {
    use clap::Parser;

    /// Measures the card from its RTL.
    #[derive(Parser)]
    #[command(name = "cosim")]
    enum Command {
        /// Latencies of stages, in cycles of their clock.
        Cycles,
        /// Four ports at line rate: frames offered, received, dropped and sent.
        LineRate {
            /// Besides minimum frames also 1 KB, 9 KB and random sizes, and a slower memory.
            #[arg(long)]
            all: bool,
        },
        /// From the start of a frame at XGMII to its payload in memory, by size.
        Latency,
        /// Outcome of the frames of a recording on the first wire.
        Received {
            /// The recording, pcap or pcapng.
            file: std::path::PathBuf,
            /// UDP ports whose payloads to record, 16 at most.
            #[arg(long)]
            udp: Vec<u16>,
        },
        /// Writes the frames that the card sends to a capture file: answers, requests, datagrams,
        /// packets of the generator.
        Sent {
            /// The file.
            file: std::path::PathBuf,
        },
        /// The ring of the event builder beside the software roles: random configurations.
        Sched {
            /// Configurations.
            #[arg(long, default_value_t = 100)]
            configurations: u64,
            /// Events of all configurations.
            #[arg(long, default_value_t = 20_000)]
            events: u64,
            /// The first seed; each configuration has the next.
            #[arg(long, default_value_t = 1)]
            seed: u64,
        },
        /// Random traffic on all ports, an adversarial host, all payloads compared.
        Soak {
            /// Wall-clock seconds.
            #[arg(long, default_value_t = 10.0)]
            seconds: f64,
            /// The first seed; each card has the next.
            #[arg(long, default_value_t = 1)]
            seed: u64,
        },
    }

    let report = match Command::parse() {
        Command::Cycles => cycles::measure()?,
        Command::LineRate { all } => line_rate::measure(all)?,
        Command::Latency => latency::measure()?,
        Command::Received { file, udp } => judge::received(&file, &udp)?,
        Command::Sent { file } => judge::sent(&file)?,
        Command::Sched {
            configurations,
            events,
            seed,
        } => sched::compare(configurations, events, seed)?,
        Command::Soak { seconds, seed } => soak::run(seconds, seed)?,
    };
    println!("{report:#}");
    Ok(())
}
