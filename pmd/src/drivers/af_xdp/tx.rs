//! Transmit side: the kernel sends frames from their buffers in the pool.

use std::sync::Arc;
use std::time::Duration;

use pollux_mempool::time::Ns;
use pollux_mempool::{Burst, BurstMut, Mbuf, PoolCache};

use super::attachment::Attachment;
use super::ring::{Consumer, Producer};
use super::umem::Posted;
use crate::clock::{Timeout, TscClock};
use crate::driver::TxDriver;
use crate::drivers::interface::Watch;
use crate::ledger::Sent;

/// Delay before transmission is retried after the interface has refused it.
const PAUSE: Ns = Ns(10_000_000);

/// Time for frames in flight to be sent at the end.
const LINGER: Ns = Ns(100_000_000);

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// Number of fragments of a frame that every kernel accepts: MAX_SKB_FRAGS, at least 17.
const MAX_PIECES: usize = 17;

/// Mode of a transmit queue.
#[derive(Clone, Copy)]
pub(super) struct Mode {
    /// The kernel signals when it must be woken.
    pub(super) need_wakeup: bool,
    /// Frames may be sent in fragments.
    pub(super) pieces: bool,
    pub(super) mtu: usize,
}

#[repr(align(128))] // as CachePadded: no line shared with another loop
pub(super) struct Tx {
    ring: Producer<libc::xdp_desc>,
    completion: Consumer<u64>,
    posted: Posted,
    /// For each buffer, whether another fragment of its frame follows; used only while frames in
    /// fragments are in flight.
    continued: Box<[bool]>,
    /// Number of such buffers.
    continuing: usize,
    /// Frames that the interface has dropped, and whose buffers have not been completed yet.
    refused: u64,
    /// Completed addresses from which nothing was sent.
    violations: u64,
    mode: Mode,
    shared: Arc<Attachment>,
    queue: usize,
    link: Arc<Watch>,
    clock: TscClock,
    /// Time before the next request to the kernel; `None`: no delay.
    paused: Option<Timeout>,
}

impl Tx {
    pub(super) fn new(
        (ring, completion): (Producer<libc::xdp_desc>, Consumer<u64>),
        posted: Posted,
        mode: Mode,
        (shared, queue): (Arc<Attachment>, usize),
        link: Arc<Watch>,
    ) -> Self {
        Self {
            ring,
            completion,
            continued: vec![false; posted.umem().pool().buffers()].into(),
            posted,
            continuing: 0,
            refused: 0,
            violations: 0,
            mode,
            shared,
            queue,
            link,
            clock: TscClock::get(),
            paused: None,
        }
    }

    /// Reclaims the buffers that the kernel has completed.
    #[inline]
    fn reap(&mut self, sent: &mut Sent, mut free: impl FnMut(&mut Burst<32>)) {
        let mut done = Burst::<32>::new();
        let (mut frames, mut bytes) = (0, 0);
        // One pass over the ring at most.
        for _ in 0..self.completion.size() {
            let Some(address) = self.completion.pop() else {
                break;
            };
            let Some((mbuf, index)) = self.posted.sent(address) else {
                self.violations += 1;
                continue;
            };
            bytes += mbuf.len() as u64;
            if self.continuing > 0 && std::mem::take(&mut self.continued[index]) {
                self.continuing -= 1;
            } else {
                frames += 1;
            }
            // There is room: a full burst is freed at once.
            drop(done.push(mbuf));
            if done.is_full() {
                free(&mut done);
            }
        }
        self.completion.release();
        if !done.is_empty() {
            free(&mut done);
        }
        let refused = self.refused.min(frames);
        self.refused -= refused;
        sent.count(frames - refused, bytes);
        sent.count_errors(refused);
    }

    /// Whether the link carries a frame of that length, and the kernel can send it.
    #[inline]
    fn is_sendable(&self, mbuf: &Mbuf) -> bool {
        let (len, longest) = (mbuf.total_len(), ETHERNET + self.mode.mtu);
        let fits = len <= longest || len <= longest + 4 && has_tag(mbuf);
        let pieces = if self.mode.pieces { MAX_PIECES } else { 1 };
        len >= ETHERNET && fits && len <= pieces * self.posted.umem().longest_piece()
    }

    /// Ring entries that a frame needs in its present buffers; `None` if it must be copied first.
    #[inline]
    fn places(&self, mbuf: &Mbuf) -> Option<usize> {
        let umem = self.posted.umem();
        if mbuf.segment_count() == 1 {
            return umem.can_send(mbuf).then_some(1);
        }
        let can_go = self.mode.pieces
            && mbuf.segment_count() <= MAX_PIECES
            && mbuf.segments().all(|piece| umem.can_send_piece(piece));
        can_go.then_some(mbuf.segment_count())
    }

    /// Writes a frame into the ring, which has free entries for it.
    #[inline]
    fn put(&mut self, mut mbuf: Mbuf) {
        loop {
            let rest = match mbuf.segment_count() {
                1 => None,
                _ => mbuf.split_off(),
            };
            let len = mbuf.len() as u32;
            // The frame belongs to the pool: `places` has checked it.
            let Ok((addr, index)) = self.posted.send(mbuf) else {
                return;
            };
            let mut options = 0;
            if rest.is_some() {
                options = libc::XDP_PKT_CONTD;
                self.continued[index] = true;
                self.continuing += 1;
            }
            let _ = self.ring.push(libc::xdp_desc { addr, len, options });
            match rest {
                Some(next) => mbuf = next,
                None => return,
            }
        }
    }

    /// Makes the kernel send the frames that it has not read yet.
    fn kick(&mut self) {
        if self.ring.unread() == 0 || (self.mode.need_wakeup && !self.ring.needs_wakeup()) {
            return;
        }
        if let Some(paused) = &mut self.paused {
            if !paused.is_over(&self.clock) {
                return;
            }
            self.paused = None;
        }
        loop {
            let before = self.ring.unread();
            let Err(error) = self.shared.socket(self.queue).kick_tx() else {
                return;
            };
            let went_on = self.ring.unread() != before;
            match error.raw_os_error() {
                // The interface has dropped a frame, which counts as completed (xsk_generic_xmit).
                Some(libc::EBUSY) => self.refused += u64::from(went_on),
                // The kernel has sent as many as one call allows, or the socket's buffer is full;
                // the next call sends the rest.
                Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR | libc::ENOMEM) => {}
                // The interface is down or gone. The frames stay in the ring until it is back.
                _ => return self.pause(),
            }
            if !went_on {
                return;
            }
        }
    }

    #[cold]
    fn pause(&mut self) {
        self.link.look();
        self.paused = Some(Timeout::new(&self.clock, PAUSE));
    }
}

/// The kernel allows one tag above the MTU, of IEEE 802.1Q only.
#[cold]
fn has_tag(mbuf: &Mbuf) -> bool {
    let mut ethertype = [0; 2];
    mbuf.copy_to(ETHERNET - 2, &mut ethertype);
    ethertype == [0x81, 0x00]
}

impl TxDriver for Tx {
    /// An empty burst is useful too: it sends frames for which the kernel had no space, and
    /// reclaims buffers.
    fn tx(&mut self, cache: &mut PoolCache, burst: &mut BurstMut<'_>, sent: &mut Sent) -> usize {
        self.reap(sent, |done| cache.free_burst(done));
        // Every frame in flight has an entry in COMPLETION, which is as long.
        let size = self.ring.size() as usize;
        let mut room = (self.ring.free(size as u32) as usize).min(size - self.posted.count());
        let (mut ready, mut refused) = (0, 0);
        for mbuf in burst.as_mut_slice() {
            if self.is_sendable(mbuf) {
                if self.places(mbuf).is_none() {
                    let Some(copy) = self.posted.umem().copy(cache, mbuf) else {
                        break;
                    };
                    cache.free(std::mem::replace(mbuf, copy));
                }
                let Some(left) = self.places(mbuf).and_then(|n| room.checked_sub(n)) else {
                    break;
                };
                room = left;
            } else {
                refused += 1;
            }
            ready += 1;
        }
        burst.take_front(ready, |mbuf| {
            // Checked again only if a refused frame is in the burst.
            if refused == 0 || self.is_sendable(&mbuf) {
                self.put(mbuf);
            } else {
                cache.free(mbuf);
            }
        });
        sent.count_errors(refused);
        self.ring.submit();
        self.kick();
        ready
    }

    fn finish(&mut self, sent: &mut Sent) {
        let mut linger = Timeout::new(&self.clock, LINGER);
        self.paused = None;
        loop {
            self.kick();
            self.reap(sent, Burst::clear);
            let hopeless = self.paused.is_some() && !self.link.is_up();
            if self.posted.count() == 0 || hopeless || linger.is_over(&self.clock) {
                break;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        let violations = self.violations + self.ring.take_lies() + self.completion.take_lies();
        if violations > 0 {
            tracing::warn!(
                violations,
                "the kernel reported frames that it was not given"
            );
        }
        // Their outcome will not be known.
        sent.count_errors((self.posted.count() - self.continuing) as u64);
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        self.shared.retire(&mut self.posted);
    }
}
