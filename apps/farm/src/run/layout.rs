//! Where the members of a farm run.

use anyhow::{Result, ensure};
use pollux_farm::topology::Topology;
use pollux_pmd::lcore;

use super::config::FarmConfig;
use super::shares::{self, Share};

/// Most loops: each pair of them has a queue of the port.
pub const MAX_LOOPS: usize = 8;

/// Where the members run.
#[derive(Clone, Debug)]
pub enum Layout {
    /// In loops of this process.
    Loops,
    /// In so many processes, with the switch between them in this one.
    Processes(u16),
    /// These in this process, the others elsewhere.
    Part(Share),
    /// Each in a process of its own, elsewhere, with the switch between them in this one.
    Switch,
}

/// The members of each loop; of each process, where there are several.
///
/// # Errors
/// Members that the farm does not have, or more processes than members.
pub fn deal(
    layout: &Layout,
    config: &FarmConfig,
    topology: &Topology,
    cores: &[usize],
    has_switch: bool,
) -> Result<Vec<Share>> {
    let (feeders, nodes) = (topology.feeders(), topology.nodes());
    let members = 2 + feeders + nodes;
    let shares = match layout {
        Layout::Loops => {
            let cpus = lcore::allowed_cpus().len();
            let default = if cores.is_empty() { cpus } else { cores.len() };
            let default = default.saturating_sub(has_switch.into());
            let loops = config.loops.loops.map_or(default, usize::from);
            shares::deal_in_turn(feeders, nodes, loops.clamp(1, MAX_LOOPS.min(members)))
        }
        Layout::Processes(processes) => {
            let processes = usize::from(*processes);
            ensure!(
                processes <= members,
                "--processes: {processes} for {members} members; set at most as many"
            );
            shares::deal(feeders, nodes, processes)
        }
        Layout::Switch => shares::each(feeders, nodes),
        Layout::Part(share) => {
            let last_node = share.nodes.iter().next_back().map(usize::from);
            for (kind, last, of) in [
                ("feeder", share.feeders.end.checked_sub(1), feeders),
                ("node", last_node, nodes),
            ] {
                ensure!(
                    last.is_none_or(|last| last < of),
                    "{kind} {}: the farm has {of}, the first one is 0; set `{kind}s` in the \
                     configuration of all members",
                    last.unwrap_or(0)
                );
            }
            vec![share.clone()]
        }
    };
    Ok(shares)
}
