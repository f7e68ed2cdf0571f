//! Through the queues of a port: an interface, a capture file, the loopback.

use pollux_images::formats::{HEADER_LEN, Layout};
use pollux_mempool::{Burst, Mbuf, PoolCache};
use pollux_pmd::driver::Capabilities;
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::ledger::SentView;
use pollux_pmd::net::{Checksum, Parsed, UDP_HEADERS, UdpChecksum, UdpTemplate, classify};
use pollux_pmd::{Cause, Clock, Ledger, RxQueue, Tally, TxQueue};
use zerocopy::IntoBytes as _;

use super::api::{PacketLink, SentCounts};
use crate::images::config::ImagesConfig;
use crate::images::stack::{Headers, Stack};
use crate::images::stream::Packet;
use crate::link::{CAPTURE_EPOCH, Neighbour, NoAnswer};

/// Packets moved at once.
const BURST: usize = 32;
/// Iterations of the loop from one attempt to send what a driver still holds to the next.
const RETRY: u32 = 1024;
/// Bytes of the Ethernet, IPv4 and UDP headers of a packet.
pub const FRAME_OVERHEAD: usize = UDP_HEADERS;
/// Bytes of the Ethernet header and of the IPv4 header in front of the UDP header.
const UDP_AT: usize = 34;
/// Place of the checksum in a frame.
const CHECKSUM_AT: usize = UDP_AT + 6;
/// Bytes of the Ethernet header.
const ETHERNET: usize = 14;

/// Why a link through a port cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// The link does not carry frames as long as the packets.
    #[error(
        "{port}: the link carries frames up to {max} B, the detector's packets are frames of {need} B: \
         use jumbo frames, with an MTU of at least {} B here, on every switch and at the receiver \
         (`ip link set dev IF mtu 9000`; where the port has an option mtu, set that)",
        need - ETHERNET
    )]
    Mtu {
        /// The port.
        port: String,
        /// Largest frame of the link.
        max: usize,
        /// Bytes of a frame with a packet.
        need: usize,
    },
    /// A frame does not fit one buffer.
    #[error(
        "a pool with buffers of {room} B for frames of {need} B: make the pool with a larger data_room"
    )]
    Room {
        /// Data room of the pool's buffers.
        room: usize,
        /// Bytes of a frame with a packet.
        need: usize,
    },
    /// There is no queue to send through.
    #[error("the port has no transmit queue: use a port that can send")]
    NoQueue,
    /// The MAC address of the receiver was not found.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
}

/// A transmit queue and the packets that wait for it.
struct Queue {
    tx: TxQueue,
    burst: Burst<BURST>,
}

/// A link through the queues of a port. Sender s sends through queue s modulo their number, so that a
/// receiver with as many receive loops gets the senders of each apart where the port keeps the queues
/// apart, as `loopback` does.
pub struct PortLink {
    queues: Vec<Queue>,
    rx: Vec<RxQueue>,
    cache: PoolCache,
    templates: Vec<UdpTemplate>,
    headers: Headers,
    neighbour: Neighbour,
    capture: bool,
    flushes: u32,
    received: Burst<BURST>,
    sent: u64,
    errors: u64,
    tally: Tally,
}

impl PortLink {
    /// Checks that the frames of the packets fit the link of a port.
    ///
    /// # Errors
    /// They do not.
    pub fn check(port: &str, offered: &Capabilities, layout: &Layout) -> Result<(), PortError> {
        let (max, need) = (offered.max_frame, FRAME_OVERHEAD + layout.payload_bytes());
        if need > max {
            let port = port.into();
            return Err(PortError::Mtu { port, max, need });
        }
        Ok(())
    }

    /// A link over queues that a port gave out, for a configuration that is valid and its layout. `rx`
    /// are those where ARP arrives, if there are any; `cache` is of the pool that frames are made in.
    /// With `capture`, frames carry the time at which they are due and are written as fast as
    /// possible.
    ///
    /// # Errors
    /// A pool whose buffers are too small; no queue to send through.
    pub fn new(
        config: &ImagesConfig,
        layout: &Layout,
        tx: impl IntoIterator<Item = TxQueue>,
        rx: impl IntoIterator<Item = RxQueue>,
        cache: PoolCache,
        capture: bool,
    ) -> Result<Self, PortError> {
        let (room, need) = (
            cache.pool().data_room(),
            FRAME_OVERHEAD + layout.payload_bytes(),
        );
        if room < need {
            return Err(PortError::Room { room, need });
        }
        let queue = |tx| Queue {
            tx,
            burst: Burst::new(),
        };
        let queues: Vec<_> = tx.into_iter().map(queue).collect();
        if queues.is_empty() {
            return Err(PortError::NoQueue);
        }
        Ok(Self {
            queues,
            rx: rx.into_iter().collect(),
            cache,
            templates: templates(config, layout),
            headers: Headers::new(config, layout),
            neighbour: Neighbour::new(&config.addresses.detector(), config.addresses.dst_ip),
            capture,
            flushes: 0,
            received: Burst::new(),
            sent: 0,
            errors: 0,
            tally: Tally::new(),
        })
    }

    /// Resolves the MAC address of the receiver by ARP, and addresses all packets to it. Waits for the
    /// answer, or until `stop` is set: for the start of a run on an interface.
    ///
    /// # Errors
    /// No answer within five seconds.
    pub fn resolve(
        &mut self,
        config: &mut ImagesConfig,
        layout: &Layout,
        clock: &impl Clock,
        stop: &StopFlag,
    ) -> Result<(), PortError> {
        let mac = Neighbour::resolve(config.addresses.dst_ip, clock, stop, |asks| {
            if asks && let Some(request) = self.neighbour.request(&mut self.cache) {
                self.send_now(request);
            }
            self.poll();
            self.neighbour.peer()
        })?;
        config.addresses.dst_mac = mac;
        self.templates = templates(config, layout);
        Ok(())
    }

    /// What the transmit queues send; still to be read when the port has stopped.
    #[must_use]
    pub fn sent_views(&self) -> Vec<SentView> {
        self.queues.iter().map(|queue| queue.tx.sent()).collect()
    }

    /// Gives the queues back, for [`Port::stop`](pollux_pmd::Port::stop). Packets that still wait are
    /// dropped.
    #[must_use]
    pub fn into_queues(self) -> (Vec<TxQueue>, Vec<RxQueue>) {
        let tx = self.queues.into_iter().map(|queue| queue.tx).collect();
        (tx, self.rx)
    }

    /// Sends a frame that is no packet. Where there is no room it is dropped: the peer asks again.
    fn send_now(&mut self, frame: Mbuf) {
        let mut burst = Burst::<1>::new();
        let Some(queue) = self.queues.first_mut() else {
            return;
        };
        if burst.push(frame).is_ok() {
            queue.tx.tx(&mut self.cache, &mut burst);
            self.cache.free_burst(&mut burst);
        }
    }

    /// Takes one received frame; returns its drop cause if it is of no use.
    fn receive(&mut self, mbuf: &Mbuf) -> Result<(), Cause> {
        match classify(mbuf, self.neighbour.options())? {
            Parsed::Udp(_) => Err(Cause::DemuxMiss),
            Parsed::Arp | Parsed::IcmpEcho => {
                self.neighbour.observe(mbuf);
                if let Some(reply) = self.neighbour.reply(&mut self.cache, mbuf) {
                    self.send_now(reply);
                }
                Ok(())
            }
            Parsed::Other => Err(Cause::NotForUs),
        }
    }
}

/// Headers of all senders. The checksum over the payload is completed from the stored sums of the
/// pixels.
fn templates(config: &ImagesConfig, layout: &Layout) -> Vec<UdpTemplate> {
    let template = |sender| {
        let (src, dst) = config.endpoints(sender);
        UdpTemplate::new(src, dst).with_checksum(UdpChecksum::Left)
    };
    (0..layout.senders() as u16).map(template).collect()
}

/// Makes the frame of a packet; `None` while the pool is empty.
#[inline]
fn build(
    cache: &mut PoolCache,
    template: &UdpTemplate,
    headers: &Headers,
    packet: &Packet,
    stack: &Stack,
) -> Option<Mbuf> {
    let (sender, number) = (usize::from(packet.sender), usize::from(packet.packet));
    let place = stack.place(packet.frame, sender, number);
    let pixels = stack.pixels(place);
    let mut mbuf = cache.alloc()?;
    // It fits: `PortLink::new` compared the frame with the pool's room.
    let frame = mbuf.append(FRAME_OVERHEAD + HEADER_LEN + pixels.len())?;
    template.write(frame, HEADER_LEN + pixels.len())?;
    let (front, payload) = frame.split_at_mut(FRAME_OVERHEAD);
    let (header, out) = payload.split_at_mut(HEADER_LEN);
    header.copy_from_slice(headers.of(packet.frame, sender, number).as_bytes());
    out.copy_from_slice(pixels);
    // The sum of the pixels was made with the stack: neither end of an image is read twice.
    let mut sum = Checksum::new();
    sum.add(&front[UDP_AT..]);
    sum.add(header);
    sum.add_field(stack.sum_of(place));
    front[CHECKSUM_AT..][..2].copy_from_slice(&sum.finish_udp().to_be_bytes());
    if let Some((at, bits)) = packet.corrupt {
        // After the checksum, as on a bad cable: one changed byte never keeps the sum.
        if let Some(byte) = payload.get_mut(usize::from(at)) {
            *byte ^= bits;
        }
    }
    Some(mbuf)
}

impl PacketLink for PortLink {
    fn offer(&mut self, packet: &Packet, stack: &Stack) -> bool {
        let queues = self.queues.len();
        let (queue, template) = (
            self.queues.get_mut(usize::from(packet.sender) % queues),
            self.templates.get(usize::from(packet.sender)),
        );
        let (Some(queue), Some(template)) = (queue, template) else {
            self.errors += 1;
            return true;
        };
        if queue.burst.is_full() {
            self.sent += queue.tx.tx(&mut self.cache, &mut queue.burst) as u64;
            if queue.burst.is_full() {
                return false;
            }
        }
        let Some(mut mbuf) = build(&mut self.cache, template, &self.headers, packet, stack) else {
            return false;
        };
        if self.capture {
            mbuf.set_wire_time(CAPTURE_EPOCH + packet.due);
        }
        if let Err(mbuf) = queue.burst.push(mbuf) {
            self.cache.free(mbuf);
            return false;
        }
        true
    }

    fn flush(&mut self) -> usize {
        // A burst of nothing has its use now and then: a driver sends what its device had no room for.
        self.flushes = self.flushes.wrapping_add(1);
        let retries = self.flushes.is_multiple_of(RETRY);
        let mut left = 0;
        for queue in &mut self.queues {
            if !queue.burst.is_empty() || retries {
                self.sent += queue.tx.tx(&mut self.cache, &mut queue.burst) as u64;
            }
            left += queue.burst.len();
        }
        left
    }

    fn poll(&mut self) {
        for queue in 0..self.rx.len() {
            if self.rx[queue].rx(&mut self.cache, &mut self.received) == 0 {
                continue;
            }
            let mut received = std::mem::take(&mut self.received);
            for mbuf in received.iter() {
                match self.receive(mbuf) {
                    Ok(()) => self.tally.count_delivered(1),
                    Err(cause) => self.tally.count_dropped(cause, 1),
                }
            }
            self.cache.free_burst(&mut received);
        }
    }

    fn is_live(&self) -> bool {
        !self.capture
    }

    fn sent(&self) -> SentCounts {
        // A frame that the queue took may be refused later.
        let errors = |queue: &Queue| queue.tx.sent().errors();
        let refused: u64 = self.queues.iter().map(errors).sum();
        SentCounts {
            packets: self.sent.saturating_sub(refused),
            errors: self.errors + refused,
            refused: 0,
        }
    }

    fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::new();
        for rx in &self.rx {
            ledger.add(format!("receive queue {}", rx.queue()), rx.tally());
        }
        ledger.add("neighbour", self.tally.view());
        ledger
    }
}
