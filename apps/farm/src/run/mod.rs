//! A run of a farm: all roles as loops of one process.
//!
//! | module | what |
//! | --- | --- |
//! | `options`, `config`, `plan` | command line and TOML, checked |
//! | `execute` | opens, launches, watches, ends in order, reports |
//! | `wiring`, `switch_loop` | ports of the loops; the switch between them |
//! | `station`, `build` | a loop: some members of the farm and their carrier |
//! | `seats` | a member in a loop: its role, and what the run does with it |
//! | `triggers`, `work` | when events are triggered; what nodes do with them |
//! | `counters`, `page`, `report` | counts that are read during the run; the page; the report |

mod build;
mod config;
mod counters;
mod execute;
mod kill;
mod options;
mod outcome;
mod page;
mod plan;
mod report;
mod seats;
mod station;
mod switch_loop;
#[cfg(test)]
mod tests;
mod triggers;
mod wiring;
mod work;

pub use options::RunOptions;

use anyhow::Context as _;
use pollux_app::Failure;

use self::config::FarmConfig;
use self::plan::Plan;

/// Runs the sub-command.
pub fn run(options: &RunOptions) -> Result<(), Failure> {
    let config = FarmConfig::of(options).map_err(Failure::Usage)?;
    if options.print_config {
        let text = toml::to_string(&config).context("--print-config");
        return Ok(pollux_app::print(text?)?);
    }
    options.clock.select()?;
    let plan = Plan::new(options, config).map_err(Failure::Usage)?;
    Ok(execute::execute(&plan)?)
}
