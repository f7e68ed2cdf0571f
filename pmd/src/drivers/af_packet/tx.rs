//! Transmit side: copies frames into a ring from which the kernel sends.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pollux_mempool::time::Ns;
use pollux_mempool::{BurstMut, Mbuf, PoolCache};

use super::ring::{Ring, TX_DATA};
use super::socket::Socket;
use crate::clock::{Timeout, TscClock};
use crate::driver::TxDriver;
use crate::drivers::interface::Watch;
use crate::ledger::Sent;

/// Delay before transmission is retried after the interface has refused it.
const PAUSE: Ns = Ns(10_000_000);

/// Time for frames in flight to be sent at the end.
const LINGER: Ns = Ns(100_000_000);

/// The state bits of a slot's status; the other bits are about time stamps.
const STATUS: u32 =
    libc::TP_STATUS_SEND_REQUEST | libc::TP_STATUS_SENDING | libc::TP_STATUS_WRONG_FORMAT;

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

#[repr(align(128))] // as CachePadded: no line shared with another loop
pub(super) struct Tx {
    pub(super) ring: Ring,
    socket: Socket,
    mtu: usize,
    /// Length of the frame in each slot; the kernel cannot change it here.
    lens: Box<[u32]>,
    /// The slot to fill next.
    head: usize,
    /// The oldest slot that the kernel still owns.
    tail: usize,
    in_flight: usize,
    link: Arc<Watch>,
    clock: TscClock,
    /// Time before the next request to the kernel; `None`: no delay.
    paused: Option<Timeout>,
}

impl Tx {
    pub(super) fn new(ring: Ring, socket: Socket, mtu: usize, link: Arc<Watch>) -> Self {
        let lens = vec![0; ring.slots()].into();
        let clock = TscClock::get();
        Self {
            ring,
            socket,
            mtu,
            lens,
            head: 0,
            tail: 0,
            in_flight: 0,
            link,
            clock,
            paused: None,
        }
    }

    /// Reclaims the slots whose frames the kernel has completed; returns whether a frame was
    /// refused.
    fn reap(&mut self, sent: &mut Sent) -> bool {
        let (mut frames, mut bytes, mut refused) = (0, 0, 0);
        while self.in_flight > 0 {
            // Acquire pairs with the kernel's status store when it returns the slot
            // (tpacket_destruct_skb): it no longer reads the slot.
            match self.ring.status(self.tail).load(Ordering::Acquire) & STATUS {
                libc::TP_STATUS_AVAILABLE => {
                    frames += 1;
                    bytes += u64::from(self.lens[self.tail]);
                    self.tail = self.ring.after(self.tail);
                    self.in_flight -= 1;
                }
                libc::TP_STATUS_WRONG_FORMAT => {
                    self.withdraw();
                    refused += 1;
                }
                _ => break,
            }
        }
        sent.count(frames, bytes);
        sent.count_errors(refused);
        refused > 0
    }

    /// Removes the oldest frame, which the kernel has refused (the MTU was lowered). The kernel
    /// stays at that slot until it holds a frame to be sent (tpacket_snd), so the frames behind it,
    /// none of which it has read, move up.
    #[cold]
    fn withdraw(&mut self) {
        let mut slot = self.tail;
        for _ in 1..self.in_flight {
            let next = self.ring.after(slot);
            self.ring.copy_slot(next, slot);
            self.lens[slot] = self.lens[next];
            // Release: the frame is written before the kernel may send it.
            self.ring
                .status(slot)
                .store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
            slot = next;
        }
        self.ring
            .status(slot)
            .store(libc::TP_STATUS_AVAILABLE, Ordering::Release);
        self.head = slot;
        self.in_flight -= 1;
    }

    /// Whether the link carries a frame of that length. The kernel allows one additional tag, of
    /// IEEE 802.1Q only (packet_extra_vlan_len_allowed).
    fn is_sendable(&self, mbuf: &Mbuf) -> bool {
        let mut ethertype = [0; 2];
        mbuf.copy_to(ETHERNET - 2, &mut ethertype);
        let tag = if ethertype == [0x81, 0x00] { 4 } else { 0 };
        (ETHERNET..=ETHERNET + tag + self.mtu).contains(&mbuf.total_len())
    }

    /// Copies a frame into a free slot; `false` if it does not fit.
    fn fill(&mut self, mbuf: &Mbuf) -> bool {
        let mut at = TX_DATA;
        for segment in mbuf.segments() {
            if !self.ring.copy_in(self.head, at, segment) {
                return false;
            }
            at += segment.len();
        }
        let len = mbuf.total_len() as u32;
        self.ring.set_len(self.head, len);
        self.lens[self.head] = len;
        // Release: the frame is written before the kernel may send it.
        self.ring
            .status(self.head)
            .store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
        self.head = self.ring.after(self.head);
        self.in_flight += 1;
        true
    }

    /// Makes the kernel send the frames in the ring, again after each refused frame, which stops
    /// it.
    fn send(&mut self, sent: &mut Sent) {
        self.kick();
        while self.reap(sent) {
            self.kick();
        }
    }

    /// Makes the kernel send the frames that it has not read yet. It works in order, so the newest
    /// frame shows whether any are left.
    fn kick(&mut self) {
        let newest = self.head.checked_sub(1).unwrap_or(self.ring.slots() - 1);
        // Relaxed: only a hint; `reap` synchronises.
        let status = self.ring.status(newest).load(Ordering::Relaxed);
        if self.in_flight == 0 || status != libc::TP_STATUS_SEND_REQUEST {
            return;
        }
        if let Some(paused) = &mut self.paused {
            if !paused.is_over(&self.clock) {
                return;
            }
            self.paused = None;
        }
        if let Err(error) = self.socket.kick() {
            match error.raw_os_error() {
                // The queue of the interface or of the socket is full, and the next call sends the
                // rest; or the kernel has refused a frame, which `reap` detects.
                Some(
                    libc::ENOBUFS
                    | libc::EAGAIN
                    | libc::EINTR
                    | libc::ENOMEM
                    | libc::EMSGSIZE
                    | libc::EINVAL,
                ) => {}
                // The interface is down or gone. The frames stay in the ring until it is back.
                _ => self.pause(),
            }
        }
    }

    #[cold]
    fn pause(&mut self) {
        self.link.look();
        self.paused = Some(Timeout::new(&self.clock, PAUSE));
    }
}

impl TxDriver for Tx {
    /// An empty burst is useful too: it sends frames for which the kernel had no space.
    fn tx(&mut self, cache: &mut PoolCache, burst: &mut BurstMut<'_>, sent: &mut Sent) -> usize {
        self.reap(sent);
        let (mut taken, mut refused) = (0, 0);
        for mbuf in burst.as_slice() {
            if self.in_flight == self.ring.slots() {
                break;
            }
            if !self.is_sendable(mbuf) || !self.fill(mbuf) {
                refused += 1;
            }
            taken += 1;
        }
        sent.count_errors(refused);
        cache.free_front(burst, taken);
        self.send(sent);
        taken
    }

    fn finish(&mut self, sent: &mut Sent) {
        let mut linger = Timeout::new(&self.clock, LINGER);
        self.paused = None;
        loop {
            self.send(sent);
            let hopeless = self.paused.is_some() && !self.link.is_up();
            if self.in_flight == 0 || hopeless || linger.is_over(&self.clock) {
                break;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        // Their outcome will not be known.
        sent.count_errors(self.in_flight as u64);
    }
}
