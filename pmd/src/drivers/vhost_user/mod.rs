//! vhost-user driver (QEMU's docs/interop/vhost-user), front end and back end: a network port over
//! memory shared with another process or a virtual machine.
//!
//! A thread of the port connects to the peer by a socket and negotiates features, memory and rings
//! with it (`control.rs`); then frames pass through the rings (`drivers/virtio`) without a system
//! call. Either end may start first, and either may end and return: in between the link is down,
//! nothing is received, and frames to be sent stay with the caller. Frames in flight when the peer
//! disconnects are counted: sent frames that it had not taken as errors, received ones that had not
//! been polled as [`Cause::Aborted`](crate::Cause::Aborted).
//!
//! # Trust
//!
//! The back end does not trust the front end: it checks messages, memory table, rings and
//! descriptors, and an error ends the session or drops the frame. If the front end's memory file
//! cannot be sealed (DPDK's), the front end could truncate the file under the mapping: a handler of
//! bus errors turns that into the end of the session
//! ([`BusErrorGuard`](pollux_mempool::region::BusErrorGuard)). It precedes the process's own
//! handler, and a program that installs another one later disables it; `sealed=on` refuses such
//! memory.
//!
//! The front end lends its packet buffers and rings to the back end. A back end that violates the
//! protocol can corrupt the bytes of frames, and nothing else:
//!
//! - Buffers that it knew are reused only once it is proven to have released them (`lent.rs`);
//!   until then they are in quarantine, counted as `quarantined_buffers`. A port without buffers
//!   left for reception serves no back end, and logs that.
//! - Pages that it punches out of the shared memory become private pages of zeros
//!   (`damaged_pages`). The session ends, and the pool is never lent again: writes to those pages
//!   would not be visible at the other end.

mod back;
mod connection;
mod control;
mod ended;
mod endpoint;
mod front;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
#[path = "../../../tests/hostile/vhost_user.rs"]
pub mod hostile;
mod lent;
mod link;
mod memory;
mod message;
mod options;
mod process;
mod queues;
mod worker;

use std::sync::Arc;

use self::back::Back;
use self::control::Control;
use self::endpoint::Endpoint;
use self::front::Front;
use self::link::State;
use self::options::{OPTIONS, Options, Role};
use self::queues::{Rx, RxRing, RxSlot, Slot, Tx, TxRing, TxSlot};
use self::worker::End;
use crate::driver::{
    Capabilities, Description, Driver, Feature, Link, Queues, RxDriver, Statistics, Support,
    Target, TxDriver,
};
use crate::drivers::virtio::Features;
use crate::grant::MemoryGrant;
use crate::port::{PortConfig, PortError};
use crate::registry::required;
use crate::spec::PortSpec;

const UNFILTERED: Support = Support::NotOffered(
    "there is no filter: all frames of the peer are received, whatever their address",
);

pub(crate) const DESCRIPTION: Description = Description {
    target: Some(Target {
        form: "PATH",
        what: "the path of a socket",
        example: "/run/vhost.sock",
    }),
    options: OPTIONS,
    features: &[
        (Feature::Receive, Support::Yes),
        (Feature::Send, Support::Yes),
        (
            Feature::MultiQueue,
            Support::Partly("`queues`, up to 128 each way"),
        ),
        (Feature::Link, Support::Yes),
        (Feature::Mtu, Support::Yes),
        (
            Feature::Jumbo,
            Support::Partly("up to `mtu`; to receive, with `mergeable` and a peer that has it"),
        ),
        (Feature::Promiscuous, UNFILTERED),
        (Feature::Multicast, UNFILTERED),
        (
            Feature::Statistics,
            Support::Partly(
                "of the connection: sessions, violations of the protocol, buffers in quarantine, \
                 pages that a back end has removed, front ends that had written nothing into their \
                 shared memory (`untouched_memory`: it may be private, as with QEMU's share=off, \
                 and then no frame arrives)",
            ),
        ),
        (
            Feature::ZeroCopyRx,
            Support::Partly("as the front end; the back end copies"),
        ),
        (
            Feature::ZeroCopyTx,
            Support::Partly("as the front end; the back end copies"),
        ),
    ],
    check: |spec| Options::parse(spec).map(drop),
    opening_only_looks: true,
    ..Description::new(
        "vhost-user",
        "shared memory to a process or virtual machine, either end",
    )
};

/// The port's end of the protocol. The front end has a grant for its memory, which the peer writes.
enum Granted {
    Front(MemoryGrant),
    Back,
}

struct VhostUser {
    spec: String,
    options: Options,
    end: Granted,
    state: Arc<State>,
    control: Option<Arc<Control>>,
}

/// The back end needs no grant: it copies from and to memory that its peer has granted.
pub(crate) fn open(
    spec: &PortSpec,
    grant: Option<MemoryGrant>,
) -> Result<Box<dyn Driver>, PortError> {
    let options = Options::parse(spec)?;
    let end = match options.role {
        Role::Driver => Granted::Front(required(spec, grant)?),
        Role::Device => Granted::Back,
    };
    Ok(Box::new(VhostUser {
        spec: spec.to_string(),
        options,
        end,
        state: Arc::default(),
        control: None,
    }))
}

impl VhostUser {
    fn features(&self) -> Features {
        let Options {
            packed,
            in_order,
            mergeable,
            ref role,
            ..
        } = self.options;
        // The tables in packed rings of DPDK's driver (22.11) do not conform to section 2.8.7 of
        // the standard, so tables are not offered to it.
        let indirect = !(packed && matches!(role, Role::Device));
        [
            (indirect, Features::INDIRECT),
            (packed, Features::PACKED),
            (in_order, Features::IN_ORDER),
            (mergeable, Features::MERGEABLE),
        ]
        .into_iter()
        .filter(|(on, _)| *on)
        .fold(Features::VERSION_1 | Features::MTU, |all, (_, one)| {
            all | one
        })
    }

    fn ring_size(&self, config: &PortConfig) -> usize {
        self.options.ring.unwrap_or(config.ring)
    }

    fn run(&mut self, end: End) -> Result<Arc<Control>, PortError> {
        let path = &self.options.path;
        let refused = |what: &str, hint: &str| {
            let (port, what, hint) = (self.spec.clone(), what.into(), hint.into());
            move |error| PortError::System {
                port,
                what,
                hint,
                error,
            }
        };
        let endpoint = Endpoint::new(path, self.options.server).map_err(refused(
            "cannot use the path for a socket",
            "it must be shorter than 108 bytes; a server needs an unused one, in a directory that \
             it may write",
        ))?;
        let control = worker::start(self.spec.clone(), end, endpoint, self.state.clone())
            .map_err(refused("cannot start the control thread", ""))?;
        let control = Arc::new(control);
        self.control = Some(control.clone());
        Ok(control)
    }
}

fn slots<R, L>(count: u16) -> Vec<Arc<Slot<R, L>>> {
    (0..count).map(|_| Arc::new(Slot::new())).collect()
}

fn queues<R, T>(rx: Vec<Arc<RxSlot<R>>>, tx: Vec<Arc<TxSlot<T>>>, control: &Arc<Control>) -> Queues
where
    R: RxRing + 'static,
    T: TxRing + 'static,
{
    let rx = rx.into_iter().map(|slot| {
        let control = control.clone();
        Box::new(Rx { slot, control }) as Box<dyn RxDriver>
    });
    let tx = tx.into_iter().map(|slot| {
        let control = control.clone();
        Box::new(Tx { slot, control }) as Box<dyn TxDriver>
    });
    Queues {
        rx: rx.collect(),
        tx: tx.collect(),
    }
}

impl Driver for VhostUser {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_rx_queues: self.options.queues,
            max_tx_queues: self.options.queues,
            mac: Some(self.options.mac()),
            max_frame: usize::from(self.options.mtu) + 14,
            checksum_offload: false,
            wire_time: false,
            recorded: false,
            kernel_backed: false,
        }
    }

    fn validate(&self, config: &PortConfig) -> Result<(), PortError> {
        let (rx, tx) = (config.rx_queues, config.tx_queues);
        // The peer distributes its frames over all pairs of queues.
        if (1..tx).contains(&rx) {
            return Err(PortError::Unsupported {
                port: self.spec.clone(),
                asked: format!("{rx} receive queues and {tx} transmit queues"),
                offered: "as many receive queues as transmit queues, or more, or none".into(),
            });
        }
        let size = self.ring_size(config);
        if size.is_power_of_two() && (2..=1 << 15).contains(&size) {
            return Ok(());
        }
        Err(PortError::Unsupported {
            port: self.spec.clone(),
            asked: format!("a ring of {size}"),
            offered: "rings of a power of two, 2 to 32768; ring= sets it for this port".into(),
        })
    }

    fn start(&mut self, config: &PortConfig, _port: u16) -> Result<Queues, PortError> {
        match self.end {
            Granted::Front(grant) => {
                let (rx, tx) = (slots(config.rx_queues), slots(config.tx_queues));
                let end = Front {
                    grant,
                    wanted: self.features(),
                    mtu: self.options.mtu,
                    size: self.ring_size(config) as u16,
                    pool: config.pool.clone(),
                    rx: rx.clone(),
                    tx: tx.clone(),
                };
                let control = self.run(End::Front(end))?;
                Ok(queues(rx, tx, &control))
            }
            Granted::Back => {
                let (rx, tx) = (slots(config.rx_queues), slots(config.tx_queues));
                let end = Back {
                    port: self.spec.clone(),
                    offered: self.features(),
                    mtu: self.options.mtu,
                    sealed: self.options.sealed,
                    rx: rx.clone(),
                    tx: tx.clone(),
                };
                let control = self.run(End::Back(end))?;
                Ok(queues(rx, tx, &control))
            }
        }
    }

    fn stop(&mut self) -> Result<(), PortError> {
        if let Some(control) = self.control.take() {
            control.stop();
        }
        Ok(())
    }

    fn link(&self) -> Link {
        self.state.link()
    }

    fn statistics(&self) -> Statistics {
        self.state.statistics()
    }
}
