//! Images that sources write into memory of the run, by remote memory access
//! (`docs/formats/rdma-images.md`): the concept of RASHPA.
//!
//! Each module has a seat: a ring of stack buffers, and the connection of the source that writes them. A source
//! announces a stack by the immediate value of its last line. The loop then takes the lines of the stack as it
//! takes packets, and tells the source that the buffer is free again.
//!
//! | file | contents |
//! | --- | --- |
//! | `sources` | the threads that connect sources, and see them leave |
//! | `seat` | loop side of a module: announcements, what is taken, what the source is told |
//! | `stacks` | stack buffers of a module: their lines, and their keys |
//! | `reception` | the loop's part: the endpoint and all seats |
//! | `state` | hand-over of a source between thread and loop |
//! | `counts` | counters |

mod counts;
mod reception;
mod seat;
mod sources;
mod stacks;
mod state;

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use pollux_images::stack::StackLayout;
use pollux_mempool::Mempool;
use pollux_mempool::region::MemoryRegion;
use pollux_pmd::Ledger;
use pollux_pmd::port::{Port, Started};
use pollux_rdma::Memory;
use pollux_rdma::roce::{RoceEndpoint, RoceOptions};

pub use self::counts::{RdmaReport, RdmaView};
pub use self::reception::StackReception;
use self::seat::Seat;
use self::sources::Place as SourcePlace;
pub use self::sources::Sources;
use self::stacks::Stacks;
use super::opened::Opened;
use super::place::Place;
use super::plan::Plan;

/// Packet buffers that the endpoint keeps for itself.
const CACHE: usize = 256;

/// A port on which stacks are received: the port, its loop's part, the threads of its sources, and counters.
pub struct Parts<L> {
    pub port: Port<Started>,
    pub reception: StackReception<L>,
    pub sources: Sources,
    pub view: RdmaView,
}

/// Makes the endpoint of a port, with the stack buffers of all modules, and listens for their sources.
///
/// # Errors
/// A port that does not send and receive, no memory, or addresses that cannot be listened at.
pub fn open<L: Place>(
    plan: &Plan,
    listen: SocketAddr,
    pool: &Mempool,
    opened: Opened,
    place: L,
    ledger: &mut Ledger,
) -> Result<Parts<L>> {
    let Opened {
        port,
        offered,
        mut rx,
        mut tx,
    } = opened;
    let queues = rx.pop().zip(tx.pop());
    let queues = queues.with_context(|| format!("--rdma: {} does not send", port.spec()))?;
    ledger.add(format!("{} queue 0", port.spec()), queues.0.tally());
    let modules = plan.layout.modules();
    let options = RoceOptions {
        queue_pairs: modules,
        ..RoceOptions::new(plan.config.detector.ip)
    };
    let cache = pool.cache(CACHE)?;
    let (control, roce) = RoceEndpoint::new(&options, &offered, queues, cache).context("--rdma")?;
    ledger.add("rdma", roce.tally());
    let layout = StackLayout::new(&plan.layout, plan.config.detector.stack);
    let stacks = stacks(plan, layout).context("--rdma")?;
    let (view, counts) = counts::counts(modules, place.view())?;
    let (mut seats, mut places) = (Vec::new(), Vec::new());
    for (module, (stacks, counts)) in stacks.into_iter().zip(counts).enumerate() {
        let (own, theirs) = state::shared();
        let endpoint = (control.endpoint(), control.mtu());
        places.push(SourcePlace::new(
            listen,
            module,
            endpoint,
            stacks.clone(),
            theirs,
        )?);
        let first = module * plan.layout.interfaces();
        seats.push(Seat::new(&plan.layout, first, stacks, own, counts));
    }
    Ok(Parts {
        port,
        reception: StackReception::new(roce, seats, plan.layout.payload_bytes(), place),
        sources: Sources::start(places, &plan.cpus())?,
        view,
    })
}

/// The stack buffers of each module.
fn stacks(plan: &Plan, layout: StackLayout) -> Result<Vec<Stacks>> {
    let (modules, stacks) = (plan.layout.modules(), plan.config.rdma.stacks);
    let bytes = stacks * layout.bytes();
    let memory = MemoryRegion::builder(modules * bytes)
        .numa_node(plan.config.memory.numa_node)
        .build();
    let memory = Memory::new(memory.context("memory for stacks: [rdma] stacks, [detector] stack")?);
    let of = |module| Stacks::new(&memory, module * bytes, layout, stacks);
    Ok((0..modules).map(of).collect())
}

#[cfg(test)]
mod tests;
