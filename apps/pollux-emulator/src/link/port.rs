//! Through the queues of a port: an interface, a capture file, the loopback.

use std::collections::VecDeque;

use pollux_mempool::time::WireTime;
use pollux_mempool::{Burst, Mbuf, MbufFlags, PoolCache};
use pollux_pipelines::formats::hits::MAX_FRAME;
use pollux_pmd::net::{ParseOptions, Parsed, Responder, UDP_HEADERS, UdpTemplate, parse};
use pollux_pmd::{Cause, Ledger, RxQueue, Tally, TxQueue};

use super::{Link, SentCounts};
use crate::check::DecisionCheck;
use crate::config::EmulatorConfig;
use crate::frames::Frame;

/// Frames moved at once.
const BURST: usize = 32;

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
}

/// What a staged buffer is, to be counted when it is sent.
enum Staged {
    Frame { bytes: u64, hits: u32 },
    Reply,
}

/// A link through the queues of a port. Answers ARP and ping for the boards' address, so that a
/// trigger at the other end of a real cable can find them.
pub struct PortLink {
    tx: TxQueue,
    rx: Option<RxQueue>,
    cache: PoolCache,
    templates: Vec<UdpTemplate>,
    responder: Responder,
    options: ParseOptions,
    decision_port: u16,
    capture: bool,
    burst: Burst<BURST>,
    /// What is in `burst`, in order.
    staged: VecDeque<Staged>,
    received: Burst<BURST>,
    sent: SentCounts,
    tally: Tally,
}

impl PortLink {
    /// A link over queues that the caller's port gave out. `rx` is where decisions come in, if
    /// they do; `cache` is of the pool that frames are made in. With `capture`, frames bear the
    /// time at which they are due and are written as fast as possible.
    ///
    /// # Errors
    /// A pool whose buffers are too small.
    pub fn new(
        config: &EmulatorConfig,
        tx: TxQueue,
        rx: Option<RxQueue>,
        cache: PoolCache,
        capture: bool,
    ) -> Result<Self, LinkError> {
        let room = cache.pool().data_room();
        if room < UDP_HEADERS + MAX_FRAME {
            return Err(LinkError::Room { room });
        }
        let template = |board| {
            let (src, dst) = config.endpoints(board);
            UdpTemplate::new(src, dst)
        };
        let boards = config.addresses.boards();
        Ok(Self {
            tx,
            rx,
            cache,
            templates: (0..config.boards).map(template).collect(),
            responder: Responder::new(boards.mac, *boards.socket.ip()),
            options: ParseOptions {
                local: Some(*boards.socket.ip()),
                ..ParseOptions::default()
            },
            decision_port: config.addresses.decision_port,
            capture,
            burst: Burst::new(),
            staged: VecDeque::with_capacity(BURST),
            received: Burst::new(),
            sent: SentCounts::default(),
            tally: Tally::new(),
        })
    }

    /// Gives the queues back, for [`Port::stop`](pollux_pmd::Port::stop).
    #[must_use]
    pub fn into_queues(self) -> (TxQueue, Option<RxQueue>) {
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
        let Some(mut mbuf) = self.cache.alloc() else {
            return;
        };
        let room = mbuf.tailroom();
        let reply = mbuf
            .append(room)
            .and_then(|out| self.responder.reply(request.data(), out));
        match reply {
            Some(len) => {
                mbuf.truncate(len);
                self.stage(mbuf, Staged::Reply);
            }
            None => self.cache.free(mbuf),
        }
    }

    /// Takes one received frame; what became of it.
    fn receive(&mut self, mbuf: &Mbuf, check: &mut DecisionCheck) -> Result<(), Cause> {
        let trusted = mbuf.flags().contains(MbufFlags::CHECKSUM_TRUSTED);
        let options = ParseOptions {
            udp_checksum: !trusted,
            ..self.options
        };
        match parse(mbuf.data(), mbuf.total_len(), &options)? {
            Parsed::Udp(udp) if udp.dst_port == self.decision_port => check
                .packet(udp.payload(mbuf.data()))
                .map_err(|_| Cause::Malformed),
            Parsed::Udp(_) => Err(Cause::DemuxMiss),
            Parsed::Arp | Parsed::IcmpEcho => {
                self.reply(mbuf);
                Ok(())
            }
            Parsed::Other => Err(Cause::NotForUs),
        }
    }
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
        if !self.burst.is_empty() {
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
        let Some(rx) = &mut self.rx else { return };
        if rx.rx(&mut self.cache, &mut self.received) == 0 {
            return;
        }
        let mut received = std::mem::take(&mut self.received);
        for mbuf in received.iter() {
            match self.receive(mbuf, check) {
                Ok(()) => self.tally.count_delivered(1),
                Err(cause) => self.tally.count_dropped(cause, 1),
            }
        }
        self.cache.free_burst(&mut received);
        self.flush();
    }

    fn is_live(&self) -> bool {
        !self.capture
    }

    fn can_receive(&self) -> bool {
        self.rx.is_some()
    }

    fn sent(&self) -> SentCounts {
        let errors = self.sent.errors + self.tx.sent().errors();
        SentCounts {
            errors,
            ..self.sent
        }
    }

    fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::new();
        if let Some(rx) = &self.rx {
            ledger.add("decisions", rx.tally());
        }
        ledger.add("check", self.tally.view());
        ledger
    }
}
