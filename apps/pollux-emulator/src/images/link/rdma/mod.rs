//! Into the receiver's memory, by remote memory access: stacks of image lines, as RASHPA places them
//! (`docs/formats/rdma-images.md`).
//!
//! A packet of the detector is a line. It is written by a PUT on an unreliable connection to its place in a
//! stack buffer of the receiver; the last line of a stack has the stack's number as immediate value. Each
//! module has a connection of its own.
//!
//! | file | contents |
//! | --- | --- |
//! | `connect` | the exchange with the receiver |
//! | `lane` | a module's connection: its stacks, and the buffers that are free for them |
//! | `lines` | lines in registered memory, from which they are sent without a copy |

mod connect;
mod error;
mod lane;
mod lines;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use pollux_images::formats::Layout;
use pollux_mempool::PoolCache;
use pollux_mempool::time::{Ns, Tsc};
use pollux_pmd::{Capabilities, Clock, Ledger, RxQueue, TscClock, TxQueue};
use pollux_rdma::Endpoint;
use pollux_rdma::roce::{RoceEndpoint, RoceLoop, RoceOptions};

use self::connect::connect;
pub use self::connect::{Connections, RdmaOptions};
pub use self::error::RdmaError;
use self::lane::{Lane, Place};
use self::lines::Lines;
use super::api::{PacketLink, SentCounts, StackCounts};
use crate::images::config::ImagesConfig;
use crate::images::stack::{Headers, Stack};
use crate::images::stream::Packet;

/// How long the receiver may take for a stack: its stages may be slow.
const PATIENCE: Ns = Ns(30_000_000_000);

/// A link into the memory of a receiver.
pub struct RdmaLink {
    roce: RoceLoop,
    ledger: Ledger,
    clock: TscClock,
    begin: Tsc,
    lanes: Vec<Lane>,
    lines: Lines,
    headers: Headers,
    layout: Layout,
    first_frame: u64,
    sent: SentCounts,
    /// The receiver is gone.
    is_over: Arc<AtomicBool>,
    // Behind the queue pairs: it outlives them.
    _endpoint: Endpoint,
}

impl RdmaLink {
    /// Connects all modules of a configuration, which is that of the stack, by a receive and a transmit
    /// queue of a port with these capabilities. Blocks until the receiver has answered.
    ///
    /// # Errors
    /// No memory, or no receiver with buffers for these images.
    pub fn connect(
        config: &ImagesConfig,
        stack: &Stack,
        port: &Capabilities,
        queues: (RxQueue, TxQueue),
        cache: PoolCache,
        options: &RdmaOptions,
    ) -> Result<(Self, Connections), RdmaError> {
        let layout = *stack.layout();
        let roce = RoceOptions {
            mac: config.addresses.src_mac,
            queue_pairs: layout.modules(),
            ..RoceOptions::new(*config.addresses.detector().socket.ip())
        };
        let mut ledger = Ledger::new();
        ledger.add("rx", queues.0.tally());
        let (control, roce) = RoceEndpoint::new(&roce, port, queues, cache)?;
        ledger.add("rdma", roce.tally());
        let mut endpoint = control.endpoint();
        let lines = Lines::new(&mut endpoint, stack)?;
        let (mut lanes, mut channels) = (Vec::new(), Vec::new());
        for module in 0..layout.modules() {
            let (lane, channel) = connect(&control, &mut endpoint, &layout, module, options)?;
            lanes.push(lane);
            channels.push(channel);
        }
        let clock = TscClock::get();
        let is_over = Arc::<AtomicBool>::default();
        let mut link = Self {
            roce,
            ledger,
            begin: clock.now(),
            clock,
            lanes,
            lines,
            headers: Headers::new(config, &layout),
            layout,
            first_frame: config.first_frame,
            sent: SentCounts::default(),
            is_over: Arc::clone(&is_over),
            _endpoint: endpoint,
        };
        link.wait_until_ready(options)?;
        let connections = Connections {
            channels,
            are_over: is_over,
        };
        Ok((link, connections))
    }

    /// Waits until the receiver has connected all modules: until then it drops what comes.
    fn wait_until_ready(&mut self, options: &RdmaOptions) -> Result<(), RdmaError> {
        let begin = Instant::now();
        while let Some(module) = self.lanes.iter().position(|lane| !lane.is_ready()) {
            if options.stop.is_set() {
                return Err(RdmaError::Stopped);
            }
            if begin.elapsed() > options.patience {
                let to = options.to;
                return Err(RdmaError::NotReady { module, to });
            }
            self.poll();
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Frames that the endpoint has sent.
    #[must_use]
    pub fn frames_sent(&self) -> u64 {
        self.roce.counts().get().sent
    }

    /// Gives the queues back, for [`Port::stop`](pollux_pmd::Port::stop).
    #[must_use]
    pub fn into_queues(self) -> (Vec<TxQueue>, Vec<RxQueue>) {
        let Self { roce, lanes, .. } = self;
        drop(lanes);
        let (rx, tx) = roce.into_queues();
        (tx.into_iter().collect(), vec![rx])
    }
}

impl PacketLink for RdmaLink {
    fn offer(&mut self, packet: &Packet, stack: &Stack) -> bool {
        let (sender, number) = (usize::from(packet.sender), usize::from(packet.packet));
        let interfaces = self.layout.interfaces();
        let Some(lane) = self.lanes.get_mut(sender / interfaces) else {
            self.sent.errors += 1;
            return true;
        };
        let index = stack.place(packet.frame, sender, number).index();
        if !lane.has_room() || !self.lines.is_free(index, lane.done()) {
            return false;
        }
        let image = match lane.place(packet.frame.wrapping_sub(self.first_frame)) {
            Place::Wait => return false,
            Place::Lost => {
                self.sent.errors += 1;
                return true;
            }
            Place::Image(image) => image,
        };
        let mut header = self.headers.of(packet.frame, sender, number);
        if let Some((_, bits)) = packet.corrupt {
            // The endpoint makes the checksum, so the byte is one that every receiver checks.
            header.detector ^= bits;
        }
        let line = sender % interfaces * self.layout.packets() + number;
        self.lines.set_header(index, &header, lane.next_request());
        if lane.put(image, line, self.lines.payload(index)) {
            self.sent.packets += 1;
        } else {
            self.sent.errors += 1;
        }
        true
    }

    fn flush(&mut self) -> usize {
        for lane in &mut self.lanes {
            lane.doorbell();
        }
        0
    }

    fn poll(&mut self) {
        let cycles = self.clock.now().since(self.begin);
        let now: Ns = self.clock.to_ns(cycles);
        self.roce.poll(now);
        for lane in &mut self.lanes {
            lane.poll(now);
        }
    }

    fn patience(&self) -> Ns {
        if self.is_over.load(Ordering::Relaxed) {
            return Ns(0);
        }
        PATIENCE
    }

    fn finish(&mut self) -> usize {
        self.lanes.iter_mut().map(Lane::finish).sum()
    }

    fn sent(&self) -> SentCounts {
        self.sent
    }

    fn ledger(&self) -> Ledger {
        self.ledger.clone()
    }

    fn stacks(&self) -> Option<StackCounts> {
        let mut all = StackCounts::default();
        for counts in self.lanes.iter().map(Lane::counts) {
            all.announced += counts.announced;
            all.taken += counts.taken;
            all.overrun += counts.overrun;
            all.repeated += counts.repeated;
        }
        Some(all)
    }
}
