//! Transmit side: one system call for a burst of frames.

use std::io::IoSlice;
use std::sync::Arc;

use pollux_mempool::{BurstMut, Mbuf, PoolCache};
use rustix::io::Errno;

use super::limits::ETHERNET;
use super::socket::{BATCH, SLICES, Socket};
use super::watch::Watch;
use crate::driver::TxDriver;
use crate::ledger::Sent;

#[repr(align(128))] // as CachePadded: no line shared with another loop
pub(super) struct Tx {
    socket: Arc<Socket>,
    watch: Arc<Watch>,
    /// Longest frame, in bytes.
    longest: usize,
}

/// Outcome of sending frames from the front of a burst.
enum End {
    Sent(usize),
    /// The first of them will never be sent.
    Refused,
    /// The peer is not there: frames are dropped.
    NoPeer,
    /// The peer's queue is full, or this socket's buffer: retry later.
    NotNow,
}

impl Tx {
    pub(super) fn new(socket: Arc<Socket>, watch: Arc<Watch>, longest: usize) -> Self {
        Self {
            socket,
            watch,
            longest,
        }
    }

    fn fits(&self, mbuf: &Mbuf) -> bool {
        (ETHERNET..=self.longest).contains(&mbuf.total_len()) && mbuf.segment_count() <= SLICES
    }

    fn send(&self, frames: &[Mbuf]) -> End {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let mut segments = [0; BATCH];
        let (mut used, mut count) = (0, 0);
        for mbuf in frames.iter().take(BATCH) {
            let next = mbuf.segment_count();
            if !self.fits(mbuf) || used + next > SLICES {
                break;
            }
            for (slice, segment) in slices[used..].iter_mut().zip(mbuf.segments()) {
                *slice = IoSlice::new(segment);
            }
            segments[count] = next;
            (used, count) = (used + next, count + 1);
        }
        if count == 0 {
            return End::Refused;
        }
        match self.socket.send(&slices[..used], &segments[..count]) {
            Ok(sent) => End::Sent(sent),
            Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS | Errno::NOMEM) => End::NotNow,
            // Longer than the socket's buffer.
            Err(Errno::MSGSIZE) => End::Refused,
            // No file, no socket that is bound to it, or one that takes no frames of this port.
            Err(_) => End::NoPeer,
        }
    }
}

impl TxDriver for Tx {
    fn tx(&mut self, cache: &mut PoolCache, burst: &mut BurstMut<'_>, sent: &mut Sent) -> usize {
        let (mut taken, mut frames, mut bytes) = (0, 0, 0);
        let all = burst.as_slice();
        while taken < all.len() {
            match self.send(&all[taken..]) {
                End::Sent(count) => {
                    let done = all[taken..].iter().take(count);
                    bytes += done.map(|mbuf| mbuf.total_len() as u64).sum::<u64>();
                    frames += count as u64;
                    taken += count;
                }
                End::Refused => taken += 1,
                End::NoPeer => {
                    self.watch.look();
                    taken = all.len();
                }
                End::NotNow => break,
            }
        }
        sent.count(frames, bytes);
        sent.count_errors(taken as u64 - frames);
        cache.free_front(burst, taken);
        taken
    }
}
