//! The ring of `hw/rtl/evb`, by Verilator, beside the roles of `pollux-farm`: equal in each decision.
//!
//! The gateware says which operation it begins (`shim/ring.h`); the roles do the same, and every
//! message, every transfer, and in the end every register and counter are compared.

mod command;
mod farm;
mod flow;
mod latency;
mod model;
mod oracle;
mod ring;
mod setting;

pub use latency::latencies;

/// Runs of random configurations.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// Configurations.
    pub configurations: u64,
    /// Events that the scheduler sent.
    pub events: u64,
    /// Cycles that were simulated.
    pub cycles: u64,
    /// The first difference of each configuration that has one.
    pub mismatches: Vec<String>,
}

/// Runs configurations of the seeds from `seed` on, each for so many events.
///
/// # Errors
/// A ring that does not answer, or a configuration that cannot be.
pub fn compare(configurations: u64, events: u64, seed: u64) -> anyhow::Result<Compared> {
    let mut all = Compared::default();
    for seed in seed..seed + configurations {
        let report = farm::run(seed, events)?;
        all.configurations += 1;
        all.events += report.events;
        all.cycles += report.cycles;
        all.mismatches.extend(report.mismatch);
    }
    Ok(all)
}
