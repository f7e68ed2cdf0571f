//! Port start: sockets and rings, then the buffers, then the program.

use std::sync::Arc;

use super::attachment::Attachment;
use super::options::Options;
use super::patience::patiently;
use super::quarantine::{Probe, UmemQuarantine};
use super::redirect::Redirect;
use super::ring::{Consumer, Producer};
use super::rx::{self, Rx};
use super::socket::{COMPLETION, FILL, RX, Socket, TX};
use super::steer::Rules;
use super::tx::{self, Tx};
use super::umem::{Posted, Umem};
use crate::drivers::interface::packet::Membership;
use crate::drivers::interface::{Interface, Watch};
use crate::drivers::step::Step;
use crate::port::PortConfig;

/// Ethernet header and one VLAN tag.
const HEADERS: usize = 18;

/// Buffers that the kernel has beyond those that fill the RX ring, so that a slow program shows as
/// a full ring, and not as a lack of buffers.
const SPARE: usize = 64;

/// Size of a ring that must exist and is not used.
const UNUSED: u32 = 2;

type Received = (Consumer<libc::xdp_desc>, Producer<u64>);
type Sending = (Producer<libc::xdp_desc>, Consumer<u64>);

/// Inputs of a port start.
pub(super) struct Setup<'a> {
    pub(super) options: &'a Options,
    pub(super) interface: &'a Interface,
    pub(super) config: &'a PortConfig,
    pub(super) link: &'a Arc<Watch>,
    pub(super) umem: &'a Umem,
    pub(super) quarantine: &'a Arc<UmemQuarantine>,
}

/// The queues of a started port.
pub(super) struct Started {
    pub(super) rx: Vec<Rx>,
    pub(super) tx: Vec<Tx>,
    pub(super) shared: Arc<Attachment>,
}

impl Setup<'_> {
    /// Whether frames are longer than a buffer and therefore in fragments.
    fn in_pieces(&self) -> bool {
        let umem = self.umem;
        self.interface.mtu + HEADERS > umem.frame_room().min(umem.longest_piece())
    }

    fn ring_size(&self, configured: usize) -> u32 {
        let frames = self.options.ring.unwrap_or(configured);
        frames.next_power_of_two() as u32
    }

    fn bind_flags(&self) -> u16 {
        let mut flags = match self.options.mode {
            // Zero copy needs aligned chunks, or large pages: the pool decides.
            0 if !self.umem.is_aligned() => libc::XDP_COPY,
            mode => mode,
        };
        if self.options.need_wakeup {
            flags |= libc::XDP_USE_NEED_WAKEUP;
        }
        if self.in_pieces() {
            flags |= libc::XDP_USE_SG;
        }
        flags
    }

    /// A socket with the rings for its directions; FILL and COMPLETION are always required.
    fn socket(
        &self,
        queue: u16,
        receive: bool,
        send: bool,
    ) -> Result<(Socket, Option<Received>, Option<Sending>), Step> {
        let socket = Socket::new()?;
        if queue == 0 {
            socket.register(&self.umem.registration())?;
        }
        let received = if receive {
            let size = self.ring_size(self.config.rx_ring(queue));
            // Space for the spare buffers as well.
            let fill = socket.producer(&FILL, 2 * size.max(SPARE as u32))?;
            Some((socket.consumer(&RX, size)?, fill))
        } else {
            socket.reserve(&FILL, UNUSED)?;
            None
        };
        let sending = if send {
            let size = self.ring_size(self.config.tx_ring(queue));
            let completion = socket.consumer(&COMPLETION, size)?;
            let ring = socket.producer(&TX, size)?;
            socket.widen_tx(size);
            Some((ring, completion))
        } else {
            socket.reserve(&COMPLETION, UNUSED)?;
            None
        };
        if let Some(usec) = self.options.busy_poll {
            socket.busy_poll(usec)?;
        }
        Ok((socket, received, sending))
    }

    /// Opens everything; frames are received from its return on.
    pub(super) fn start(&self) -> Result<Started, Step> {
        let (config, options) = (self.config, self.options);
        let (rx_queues, tx_queues) = (config.rx_queues, config.tx_queues);
        let (mut sockets, mut received, mut sending) = (Vec::new(), Vec::new(), Vec::new());
        let mut probes = Vec::new();
        for queue in 0..rx_queues.max(tx_queues) {
            let (receive, send) = (queue < rx_queues, queue < tx_queues);
            let (socket, rx, tx) = self.socket(queue, receive, send)?;
            sockets.push(socket);
            let number = u32::from(options.first_queue() + queue);
            probes.push(self.quarantine.probe(number)?);
            received.extend(rx);
            sending.extend(tx);
        }
        let membership = Membership::new(self.interface.index, &options.filter)?;
        let rules = [&options.steer[..], &config.flow_rules].concat();
        let rules = Rules::insert(self.interface, options.first_queue(), &rules)
            .map_err(|error| ("cannot steer UDP ports to queues", error))?;
        let shared = Arc::new(Attachment::new(
            sockets,
            membership,
            rules,
            self.quarantine.clone(),
        ));

        // From here on the queues ensure that the kernel releases the buffers first.
        let rx = received.into_iter().enumerate();
        let rx = rx
            .map(|(queue, rings)| self.rx(rings, &shared, queue))
            .collect();
        let tx = sending.into_iter().enumerate();
        let tx = tx
            .map(|(queue, rings)| self.tx(rings, &shared, queue))
            .collect();
        let started = Started { rx, tx, shared };
        self.bind(&started.shared, probes)?;
        if rx_queues > 0 {
            self.attach(&started.shared, rx_queues)?;
        }
        Ok(started)
    }

    fn rx(&self, rings: Received, shared: &Arc<Attachment>, queue: usize) -> Rx {
        // Half of the pool at most: buffers must remain for transmission and for processing.
        let share = self.config.pool.buffers() / 2 / usize::from(self.config.rx_queues);
        let size = self.ring_size(self.config.rx_ring(queue as u16));
        let target = (size as usize + SPARE).min(share).max(1);
        let mode = rx::Mode {
            busy_poll: self.options.busy_poll.is_some(),
            trust_checksums: self.options.trust_checksums,
            pieces: self.in_pieces(),
        };
        let posted = Posted::new(self.umem.clone());
        Rx::new(
            rings,
            (posted, target),
            mode,
            (shared.clone(), queue),
            self.link.clone(),
        )
    }

    fn tx(&self, rings: Sending, shared: &Arc<Attachment>, queue: usize) -> Tx {
        let mode = tx::Mode {
            need_wakeup: self.options.need_wakeup,
            pieces: self.in_pieces(),
            mtu: self.interface.mtu,
        };
        let posted = Posted::new(self.umem.clone());
        Tx::new(
            rings,
            posted,
            mode,
            (shared.clone(), queue),
            self.link.clone(),
        )
    }

    fn bind(&self, shared: &Attachment, probes: Vec<Probe>) -> Result<(), Step> {
        let (index, flags) = (self.interface.index, self.bind_flags());
        for (i, probe) in probes.into_iter().enumerate() {
            let first = (i > 0).then(|| shared.socket(0));
            let socket = shared.socket(i);
            patiently(|| socket.bind(index, probe.queue(), flags, first))
                .map_err(|error| ("cannot bind to the NIC's queue", error))?;
            shared.bound(probe);
        }
        Ok(())
    }

    fn attach(&self, shared: &Attachment, rx_queues: u16) -> Result<(), Step> {
        let redirect = Redirect::join(self.interface, self.options)?;
        shared
            .attach(&redirect, rx_queues.into())
            .map_err(|error| ("cannot give a queue's frames to a socket", error))
    }
}
