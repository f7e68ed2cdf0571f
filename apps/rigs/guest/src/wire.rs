//! Frames by hand, and loops that answer: what stands at the other end of a port.

use std::net::Ipv4Addr;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::mempool::{Burst, Mbuf, Mempool, PoolCache};
use pollux_pmd::net::{MacAddr, ParseOptions, Parsed, Responder, classify};
use pollux_pmd::{Cause, Ledger, Tally, TxQueue};

use crate::nic::PATIENCE;
use crate::rig::{Direction, End, Rig};

const BURST: usize = 32;

/// Ethertype of the frame that marks an end (IEEE 802, local experimental 1).
const MARK: [u8; 2] = [0x88, 0xb5];

/// A frame that came, and what it is.
pub(crate) struct Received {
    pub(crate) bytes: Vec<u8>,
    pub(crate) parsed: Result<Parsed, Cause>,
}

impl Rig {
    /// Sends these frames one way through the first queue, and one that marks the end behind them.
    /// What the other end received until the mark came: a queue keeps the order.
    pub(crate) fn pass(
        &mut self,
        direction: Direction,
        frames: &[Vec<u8>],
    ) -> Result<Vec<Received>> {
        let mark = self.mark(direction)?;
        let mut tally = Tally::new();
        self.ledger.add("by hand", tally.view());
        let mut cache = self.pool.cache(64)?;
        let (from, to) = direction.of(&mut self.a, &mut self.b);
        let mut frames = frames.iter().chain([&mark]);
        let (mut out, mut burst) = (Burst::<1>::new(), Burst::<BURST>::new());
        let mut received = Vec::new();
        let began = Instant::now();
        loop {
            if out.is_empty()
                && let Some(frame) = frames.next()
            {
                let mbuf = cache.alloc_from(frame).context("the pool is empty")?;
                let _ = out.push(mbuf);
            }
            from.tx[0].tx(&mut cache, &mut out);
            to.rx[0].rx(&mut cache, &mut burst);
            let mut ended = false;
            for mbuf in burst.iter() {
                tally.count_delivered(1);
                let mut bytes = vec![0; mbuf.total_len()];
                mbuf.copy_to(0, &mut bytes);
                ended |= bytes == mark;
                let parsed = classify(mbuf, &ParseOptions::default());
                received.push(Received { bytes, parsed });
            }
            cache.free_burst(&mut burst);
            if ended {
                received.retain(|frame| frame.bytes != mark);
                return Ok(received);
            }
            let waited = began.elapsed();
            ensure!(
                waited < PATIENCE,
                "{direction:?}: {} frames came, but the last has not",
                received.len()
            );
        }
    }

    fn mark(&self, direction: Direction) -> Result<Vec<u8>> {
        let (from, to) = direction.of(&self.a, &self.b);
        let mut frame = plain(to.mac()?, from.mac()?);
        frame[12..14].copy_from_slice(&MARK);
        Ok(frame)
    }
}

/// Sends every frame back to its sender, until the stop flag is set.
pub(crate) fn reflect(
    end: &mut End,
    pool: &Mempool,
    ledger: &mut Ledger,
    stop: &StopFlag,
) -> Result<()> {
    let own = end.mac()?;
    let mut tally = end.count_into(ledger);
    let mut cache = pool.cache(256)?;
    let mut bursts: Vec<_> = end.rx.iter().map(|_| Burst::<BURST>::new()).collect();
    while !stop.is_set() {
        let mut idle = true;
        for ((rx, tx), burst) in end.rx.iter_mut().zip(&mut end.tx).zip(&mut bursts) {
            // What is left of the last time has been turned round already.
            let room = burst.free();
            let received = rx.rx_up_to(&mut cache, burst, room);
            tally.count_delivered(received as u64);
            idle &= received == 0;
            for mbuf in burst.iter_mut().rev().take(received) {
                if let Some((stations, _)) = mbuf.data_mut().split_first_chunk_mut::<12>() {
                    stations.copy_within(6.., 0);
                    stations[6..].copy_from_slice(&own.0);
                }
            }
            tx.tx(&mut cache, burst);
        }
        if idle {
            give_way();
        }
    }
    for burst in &mut bursts {
        cache.free_burst(burst);
    }
    Ok(())
}

/// Answers ARP and ping for an address, until the stop flag is set.
pub(crate) fn answer(
    end: &mut End,
    address: Ipv4Addr,
    pool: &Mempool,
    ledger: &mut Ledger,
    stop: &StopFlag,
) -> Result<()> {
    let responder = Responder::new(end.mac()?, address);
    let mut tally = end.count_into(ledger);
    let mut cache = pool.cache(256)?;
    let mut burst = Burst::<BURST>::new();
    let mut replies = Burst::<BURST>::new();
    let (mut bytes, mut reply) = (Vec::new(), vec![0; 16_384]);
    while !stop.is_set() {
        if end.rx[0].rx_up_to(&mut cache, &mut burst, replies.free()) == 0 {
            give_way();
        }
        for mbuf in burst.iter() {
            tally.count_delivered(1);
            bytes.resize(mbuf.total_len(), 0);
            mbuf.copy_to(0, &mut bytes);
            if let Some(length) = responder.reply(&bytes, &mut reply) {
                let mbuf = cache.alloc_from(&reply[..length]);
                let _ = replies.push(mbuf.context("the pool is empty")?);
            }
        }
        cache.free_burst(&mut burst);
        end.tx[0].tx(&mut cache, &mut replies);
    }
    cache.free_burst(&mut replies);
    Ok(())
}

/// In a loop that has nothing to do. QEMU runs the machine's CPUs by turns of 100 ms on one thread,
/// and a pause ends a turn.
fn give_way() {
    std::hint::spin_loop();
}

/// An Ethernet frame of 60 bytes that carries nothing.
pub(crate) fn plain(dst: MacAddr, src: MacAddr) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..6].copy_from_slice(&dst.0);
    frame[6..12].copy_from_slice(&src.0);
    // Local experimental 2.
    frame[12..14].copy_from_slice(&[0x88, 0xb6]);
    frame
}

/// A frame in a chain of three buffers, which takes three descriptors; `None` if the pool is empty.
pub(crate) fn in_pieces(frame: &[u8], cache: &mut PoolCache) -> Option<Mbuf> {
    let mut pieces = frame.chunks(frame.len().div_ceil(3).max(1));
    let mut chain = cache.alloc_from(pieces.next()?)?;
    for piece in pieces {
        chain.chain(cache.alloc_from(piece)?).ok()?;
    }
    Some(chain)
}

/// Sends the same frame for ever.
pub(crate) struct Sender {
    frame: Vec<u8>,
    burst: Burst<BURST>,
}

impl Sender {
    pub(crate) fn new(dst: MacAddr, src: MacAddr) -> Self {
        Self::of(plain(dst, src))
    }

    pub(crate) fn of(frame: Vec<u8>) -> Self {
        let burst = Burst::new();
        Self { frame, burst }
    }

    /// A burst more, as far as the queue has room; how many it took.
    pub(crate) fn send(&mut self, queue: &mut TxQueue, cache: &mut PoolCache) -> usize {
        while !self.burst.is_full()
            && let Some(mbuf) = cache.alloc_from(&self.frame)
        {
            let _ = self.burst.push(mbuf);
        }
        queue.tx(cache, &mut self.burst)
    }
}
