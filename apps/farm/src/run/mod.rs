//! A run of a farm: the roles as loops of one process, or of several.
//!
//! A process has a share of the members, in one loop or several, and contributes its [`part`] to the
//! report. A run in one process has all shares. Of several, each has one, the same sub-command starts
//! it that a user has for a member of a farm (`members`), and the parent has the switch.
//!
//! | module | what |
//! | --- | --- |
//! | `options`, `config`, `asked`, `layout`, `plan`, `shares` | command line and TOML, checked |
//! | `execute`, `watch` | a run: opens, watches, ends in order, reports |
//! | `running` | the loops of a process |
//! | `children`, `opening`, `fate`, `orders` | other processes of the run: started, waited for, ended; what they and their parent say |
//! | `members`, `member_options` | a process with some members of a farm |
//! | `wiring`, `link`, `veths`, `switch_loop` | ports of the loops and the processes; the switch between them |
//! | `station`, `build`, `rest` | a loop: some members of the farm and their carrier |
//! | `seats` | a member in a loop: its role, and what the run does with it |
//! | `awaited`, `triggers`, `work` | when events are triggered; what nodes do with them |
//! | `counters`, `page` | counts that are read during the run; the page |
//! | `outcome`, `part`, `report` | what loops and processes leave behind; the report |

mod asked;
mod awaited;
mod build;
mod children;
mod config;
mod counters;
mod execute;
mod fate;
mod figures;
mod kill;
mod layout;
mod link;
mod member_options;
mod members;
mod opening;
mod options;
mod orders;
mod outcome;
mod page;
mod part;
mod plan;
mod report;
mod rest;
mod run_clock;
mod running;
mod seats;
mod shares;
mod station;
mod switch_loop;
#[cfg(test)]
mod tests;
mod triggers;
mod veths;
mod watch;
mod wiring;
mod work;

pub use member_options::{
    FeederOptions, NodeOptions, PartOptions, ResultOptions, SchedulerOptions, SwitchOptions,
};
pub use members::{run as run_members, run_switch};
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
    let plan = Plan::of(options, config).map_err(Failure::Usage)?;
    Ok(execute::execute(&plan, options.link)?)
}
