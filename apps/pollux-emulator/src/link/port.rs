//! Through the queues of a port: an interface, a capture file, the loopback.

use std::collections::VecDeque;

use pollux_mempool::time::WireTime;
use pollux_mempool::{Burst, Mbuf, PoolCache};
use pollux_na62::formats::hits::MAX_FRAME;
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::ledger::SentView;
use pollux_pmd::net::{Parsed, UDP_HEADERS, UdpTemplate, classify};
use pollux_pmd::{Cause, Clock, Ledger, RxQueue, Tally, TxQueue};

use super::api::{Link, SentCounts};
use super::neighbour::{Neighbour, NoAnswer};
use crate::check::DecisionCheck;
use crate::config::EmulatorConfig;
use crate::frames::Frame;
use crate::truth::Timeline;

/// Frames moved at once.
const BURST: usize = 32;

/// Rounds of the loop from one look after frames that a driver still has to the next: so many that
/// looking costs an idle loop, and the other end of a ring, nothing.
const RETRY: u32 = 1024;

/// Event 0 in a capture: 2026-01-01 00:00:00 UTC. Fixed, so that equal seeds write equal files.
pub const CAPTURE_EPOCH: WireTime = WireTime(1_767_225_600_000_000_000);

/// Why a link cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// A frame does not fit one buffer.
    #[error(
        "the emulator's pool has buffers of {room} B, but its frames are up to {} B long: \
         make the pool with a larger data_room", UDP_HEADERS + MAX_FRAME
    )]
    Room {
        /// Data room of the pool's buffers.
        room: usize,
    },
    /// The trigger's station is not known.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
}

/// What a staged buffer is, to be counted when it is sent.
enum Staged {
    Frame {
        bytes: u64,
        hits: u32,
    },
    /// ARP, or the reply to a ping.
    Other,
}

/// A link through the queues of a port. Answers ARP and ping for the boards' address, so that a
/// trigger at the other end of a real cable can find them.
pub struct PortLink {
    tx: TxQueue,
    rx: Vec<RxQueue>,
    cache: PoolCache,
    templates: Vec<UdpTemplate>,
    neighbour: Neighbour,
    decision_port: u16,
    capture: bool,
    burst: Burst<BURST>,
    /// What is in `burst`, in order.
    staged: VecDeque<Staged>,
    /// How often that was sent, or would have been.
    flushes: u32,
    received: Burst<BURST>,
    sent: SentCounts,
    tally: Tally,
}

impl PortLink {
    /// A link over queues that the caller's port gave out. `rx` are those where decisions come in, if
    /// they do; `cache` is of the pool that frames are made in. With `capture`, frames bear the
    /// time at which they are due and are written as fast as possible.
    ///
    /// # Errors
    /// A pool whose buffers are too small.
    pub fn new(
        config: &EmulatorConfig,
        tx: TxQueue,
        rx: impl IntoIterator<Item = RxQueue>,
        cache: PoolCache,
        capture: bool,
    ) -> Result<Self, LinkError> {
        let room = cache.pool().data_room();
        if room < UDP_HEADERS + MAX_FRAME {
            return Err(LinkError::Room { room });
        }
        let boards = config.addresses.boards();
        Ok(Self {
            tx,
            rx: rx.into_iter().collect(),
            cache,
            templates: templates(config),
            neighbour: Neighbour::new(&boards, config.addresses.trigger_ip),
            decision_port: config.addresses.decision_port,
            capture,
            burst: Burst::new(),
            staged: VecDeque::with_capacity(BURST),
            flushes: 0,
            received: Burst::new(),
            sent: SentCounts::default(),
            tally: Tally::new(),
        })
    }

    /// Asks for the trigger's station by ARP, and addresses all frames to it. Waits for the
    /// answer, or until `stop` is set: for the start of a run on an interface.
    ///
    /// # Errors
    /// No answer within five seconds.
    pub fn resolve(
        &mut self,
        config: &mut EmulatorConfig,
        clock: &impl Clock,
        stop: &StopFlag,
    ) -> Result<(), LinkError> {
        // Decisions that come before any event was sent are of no run.
        let mut nothing = DecisionCheck::new(Timeline::of(config));
        let mac = Neighbour::resolve(config.addresses.trigger_ip, clock, stop, |asks| {
            if asks {
                if let Some(mbuf) = self.neighbour.request(&mut self.cache) {
                    self.stage(mbuf, Staged::Other);
                }
                self.flush();
            }
            self.poll(&mut nothing);
            self.neighbour.peer()
        })?;
        config.addresses.trigger_mac = mac;
        self.templates = templates(config);
        Ok(())
    }

    /// What the transmit queue sends; still to be read when the port has stopped.
    #[must_use]
    pub fn sent_view(&self) -> SentView {
        self.tx.sent()
    }

    /// Gives the queues back, for [`Port::stop`](pollux_pmd::Port::stop).
    #[must_use]
    pub fn into_queues(self) -> (TxQueue, Vec<RxQueue>) {
        (self.tx, self.rx)
    }

    /// Puts a buffer behind those to be sent. The caller has checked that there is room.
    fn stage(&mut self, mbuf: Mbuf, what: Staged) {
        match self.burst.push(mbuf) {
            Ok(()) => self.staged.push_back(what),
            Err(mbuf) => self.cache.free(mbuf),
        }
    }

    /// Answers ARP and ping. Where there is no room for a reply, the peer asks again.
    fn reply(&mut self, request: &Mbuf) {
        if self.burst.is_full() {
            return;
        }
        if let Some(mbuf) = self.neighbour.reply(&mut self.cache, request) {
            self.stage(mbuf, Staged::Other);
        }
    }

    /// Takes one received frame; what became of it.
    fn receive(&mut self, mbuf: &Mbuf, check: &mut DecisionCheck) -> Result<(), Cause> {
        match classify(mbuf, self.neighbour.options())? {
            Parsed::Udp(udp) if udp.dst_port == self.decision_port => check
                .packet(udp.payload(mbuf.data()))
                .map_err(|_| Cause::Malformed),
            Parsed::Udp(_) => Err(Cause::DemuxMiss),
            Parsed::Arp | Parsed::IcmpEcho => {
                self.neighbour.observe(mbuf);
                self.reply(mbuf);
                Ok(())
            }
            Parsed::Other => Err(Cause::NotForUs),
        }
    }
}

fn templates(config: &EmulatorConfig) -> Vec<UdpTemplate> {
    let template = |board| {
        let (src, dst) = config.endpoints(board);
        UdpTemplate::new(src, dst)
    };
    (0..config.boards).map(template).collect()
}

/// Makes the frame of a payload; `None` while the pool is empty.
fn build(
    cache: &mut PoolCache,
    template: &UdpTemplate,
    frame: &Frame,
    capture: bool,
) -> Option<Mbuf> {
    let payload = frame.payload();
    let mut mbuf = cache.alloc()?;
    // It fits: `PortLink::new` compared the longest frame with the pool's room.
    let bytes = mbuf.append(UDP_HEADERS + payload.len())?;
    bytes[UDP_HEADERS..].copy_from_slice(payload);
    template.write(bytes, payload.len())?;
    if let Some((at, bits)) = frame.corrupt {
        // Behind the checksum's back, as on a bad cable: one changed byte never keeps the sum.
        bytes[UDP_HEADERS + usize::from(at)] ^= bits;
    }
    if capture {
        mbuf.set_wire_time(CAPTURE_EPOCH + frame.due);
    }
    Some(mbuf)
}

impl Link for PortLink {
    fn offer(&mut self, frame: &Frame) -> bool {
        if self.burst.is_full() {
            self.flush();
            if self.burst.is_full() {
                return false;
            }
        }
        let Some(template) = self.templates.get(usize::from(frame.board)) else {
            self.sent.errors += 1;
            return true;
        };
        let Some(mbuf) = build(&mut self.cache, template, frame, self.capture) else {
            return false;
        };
        let bytes = frame.payload().len() as u64;
        self.stage(
            mbuf,
            Staged::Frame {
                bytes,
                hits: frame.hits,
            },
        );
        true
    }

    fn flush(&mut self) -> usize {
        // Also a burst of nothing has its use, now and then: frames that the kernel had no room
        // for when they were sent go out.
        self.flushes = self.flushes.wrapping_add(1);
        if !self.burst.is_empty() || self.flushes.is_multiple_of(RETRY) {
            let n = self.tx.tx(&mut self.cache, &mut self.burst);
            for staged in self.staged.drain(..n) {
                if let Staged::Frame { bytes, hits } = staged {
                    self.sent.count(bytes, hits);
                }
            }
        }
        self.staged
            .iter()
            .filter(|staged| matches!(staged, Staged::Frame { .. }))
            .count()
    }

    fn poll(&mut self, check: &mut DecisionCheck) {
        let mut came = false;
        for queue in 0..self.rx.len() {
            if self.rx[queue].rx(&mut self.cache, &mut self.received) == 0 {
                continue;
            }
            came = true;
            let mut received = std::mem::take(&mut self.received);
            for mbuf in received.iter() {
                match self.receive(mbuf, check) {
                    Ok(()) => self.tally.count_delivered(1),
                    Err(cause) => self.tally.count_dropped(cause, 1),
                }
            }
            self.cache.free_burst(&mut received);
        }
        if came {
            self.flush();
        }
    }

    fn is_live(&self) -> bool {
        !self.capture
    }

    fn can_receive(&self) -> bool {
        !self.rx.is_empty()
    }

    fn sent(&self) -> SentCounts {
        // A frame that the queue took may be refused later.
        let refused = self.tx.sent().errors();
        SentCounts {
            frames: self.sent.frames.saturating_sub(refused),
            errors: self.sent.errors + refused,
            ..self.sent
        }
    }

    fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::new();
        for rx in &self.rx {
            let place = match self.rx.len() {
                1 => "decisions".into(),
                _ => format!("decisions queue {}", rx.queue()),
            };
            ledger.add(place, rx.tally());
        }
        ledger.add("check", self.tally.view());
        ledger
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use pollux_mempool::{BurstMut, Mempool, PoolConfig};
    use pollux_pmd::driver::{Capabilities, Driver, Queues, TxDriver};
    use pollux_pmd::ledger::Sent;
    use pollux_pmd::{Port, PortConfig, PortError, Registry};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Counts calls that send nothing.
    #[derive(Clone, Default)]
    struct Slow(Arc<AtomicU32>);

    impl Driver for Slow {
        fn capabilities(&self) -> Capabilities {
            Registry::builtin().open("null").unwrap().capabilities()
        }

        fn start(&mut self, _: &PortConfig, _: u16) -> Result<Queues, PortError> {
            Ok(Queues {
                rx: vec![],
                tx: vec![Box::new(self.clone())],
            })
        }
    }

    impl TxDriver for Slow {
        fn tx(&mut self, _: &mut PoolCache, burst: &mut BurstMut<'_>, _: &mut Sent) -> usize {
            assert!(burst.is_empty());
            self.0.fetch_add(1, Ordering::Relaxed);
            0
        }
    }

    #[test]
    fn an_idle_loop_tries_again_to_send() {
        let (slow, config) = (Slow::default(), EmulatorConfig::default());
        let pool = Mempool::new(PoolConfig {
            buffers: 64,
            ..PoolConfig::default()
        });
        let pool = pool.unwrap();
        let port = Port::new("slow", Box::new(slow.clone()));
        let port = port.configure(PortConfig {
            rx_queues: 0,
            ..PortConfig::new(pool.clone())
        });
        let tx = port.unwrap().start().unwrap().tx.pop().unwrap();
        let cache = pool.cache(16).unwrap();
        let mut link = PortLink::new(&config, tx, None, cache, false).unwrap();
        for _ in 0..3 * RETRY {
            assert_eq!(link.flush(), 0);
        }
        assert_eq!(slow.0.load(Ordering::Relaxed), 3);
    }
}
