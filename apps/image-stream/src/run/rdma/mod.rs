//! Images that sources write into memory of the run, by remote memory access
//! (`docs/formats/rdma-images.md`): the concept of RASHPA.
//!
//! Each module has a seat: a ring of stack buffers, and the connection of the source that writes them. A source
//! announces a stack by the immediate value of its last line. The loop then takes the lines of the stack as it
//! takes packets, and tells the source that the buffer is free again.
//!
//! | file | contents |
//! | --- | --- |
//! | `sources` | the thread that connects sources, and sees them leave |
//! | `seat` | loop side of a module: announcements, stack buffers, what the source may write |
//! | `reception` | the loop's part: the endpoint and all seats |
//! | `state` | what thread and loop share of a seat |
//! | `counts` | counters |

mod counts;
mod reception;
mod seat;
mod sources;
mod state;

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use pollux_images::stack::{StackLayout, stack_name};
use pollux_mempool::Mempool;
use pollux_mempool::region::MemoryRegion;
use pollux_pmd::Ledger;
use pollux_pmd::port::{Port, Started};
use pollux_rdma::exchange::Offered;
use pollux_rdma::roce::{RoceEndpoint, RoceOptions};
use pollux_rdma::{Access, Buffer, Endpoint, Memory};

pub use self::counts::{RdmaReport, RdmaView};
pub use self::reception::StackReception;
use self::seat::Seat;
use self::sources::Place as SourcePlace;
pub use self::sources::Sources;
use super::opened::Opened;
use super::place::Place;
use super::plan::Plan;

/// Packet buffers that the endpoint keeps for itself.
const CACHE: usize = 256;

/// A port on which stacks are received: the port, its loop's part, the thread of its sources, and counters.
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
        // The one of a source that has left may wait for the loop.
        queue_pairs: 2 * modules,
        ..RoceOptions::new(plan.config.detector.ip)
    };
    let cache = pool.cache(CACHE)?;
    let (control, roce) = RoceEndpoint::new(&options, &offered, queues, cache).context("--rdma")?;
    ledger.add("rdma", roce.tally());
    let mut endpoint = control.endpoint();
    let layout = StackLayout::new(&plan.layout, plan.config.detector.stack);
    let stacks = stacks(plan, &mut endpoint, &layout).context("--rdma")?;
    let (view, mut counts) = counts::counts(modules, place.view())?;
    let (mut seats, mut places) = (Vec::new(), Vec::new());
    for (module, buffers) in stacks.into_iter().enumerate() {
        let (own, theirs) = state::shared();
        let offered = buffers.iter().enumerate().map(|(n, buffer)| Offered {
            name: stack_name(n),
            buffer: buffer.remote(),
            bytes: buffer.len() as u64,
            access: Access::WRITE,
        });
        places.push(SourcePlace::new(listen, module, offered.collect(), theirs)?);
        let first = module * plan.layout.interfaces();
        seats.push(Seat::new(
            &plan.layout,
            layout,
            first,
            buffers,
            own,
            counts.remove(0),
        ));
    }
    let sources = Sources::start(control.mtu(), endpoint, places, &plan.cpus())?;
    Ok(Parts {
        port,
        reception: StackReception::new(roce, seats, plan.layout.payload_bytes(), place),
        sources,
        view,
    })
}

/// The stack buffers of each module.
fn stacks(plan: &Plan, endpoint: &mut Endpoint, layout: &StackLayout) -> Result<Vec<Vec<Buffer>>> {
    let (modules, stacks) = (plan.layout.modules(), plan.config.rdma.stacks);
    let bytes = layout.bytes();
    let memory = MemoryRegion::builder(modules * stacks * bytes)
        .numa_node(plan.config.memory.numa_node)
        .build();
    let memory = Memory::new(memory.context("memory for stacks: [rdma] stacks, [detector] stack")?);
    let mut next = 0;
    let mut buffer = || {
        let range = next..next + bytes;
        next = range.end;
        endpoint.register_buffer(&memory, range, Access::WRITE)
    };
    let mut module = || (0..stacks).map(|_| buffer()).collect::<Result<_, _>>();
    Ok((0..modules).map(|_| module()).collect::<Result<_, _>>()?)
}
