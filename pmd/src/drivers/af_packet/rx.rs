//! Receive side: copies frames from the kernel's ring into buffers.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use libc::tpacket2_hdr;
use pollux_mempool::time::{Ns, Tsc, WireTime};
use pollux_mempool::{BurstMut, Mbuf, MbufFlags, PoolCache};

use super::ring::Ring;
use super::socket::Socket;
use crate::arrival::{ArrivalTime, Line};
use crate::clock::{Clock, TscClock};
use crate::driver::{Origin, RxDriver};
use crate::drivers::chain::alloc_frame;
use crate::drivers::interface::Watch;
use crate::ledger::{Cause, Tally};
use crate::port::RxState;

/// Interval at which an idle queue checks its link.
const WATCH: Ns = Ns(10_000_000);

/// Destination and source address: a VLAN tag follows them (IEEE 802.1Q section 9.3).
const ADDRESSES: usize = 12;
const TAG: usize = 4;

/// The socket of a receive queue and the kernel's counters of it. Shared with the port: reading the
/// kernel's counters resets them, so every reader adds them to the sums here.
pub(super) struct Source {
    pub(super) socket: Socket,
    frames: AtomicU64,
    drops: AtomicU64,
}

impl Source {
    pub(super) fn new(socket: Socket) -> Arc<Self> {
        Arc::new(Self {
            socket,
            frames: AtomicU64::new(0),
            drops: AtomicU64::new(0),
        })
    }

    /// All frames that the kernel had for the socket, and how many of them it has dropped.
    pub(super) fn counts(&self) -> (u64, u64) {
        let (frames, drops) = self.socket.take_counts();
        // Relaxed: sums that order nothing.
        (
            self.frames.fetch_add(frames, Ordering::Relaxed) + frames,
            self.drops.fetch_add(drops, Ordering::Relaxed) + drops,
        )
    }
}

/// Status bits of which each says that a frame's checksum needs no verification, from a kernel of
/// that release: a partial checksum of a local sender, or a verified one.
///
/// Before the fix "packet: do not set TP_STATUS_CSUM_VALID on CHECKSUM_COMPLETE" (b85f628aa158, end
/// of 2022) kernels also set the second bit where the NIC had only computed a sum, which nothing
/// compares. 6.2 is the first release that has the fix in each of its versions.
pub(super) fn trusted_status(release: &str) -> u32 {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next()?.parse::<u32>().ok();
    let is_fixed =
        matches!((number(), number()), (Some(major), Some(minor)) if (major, minor) >= (6, 2));
    if is_fixed {
        libc::TP_STATUS_CSUMNOTREADY | libc::TP_STATUS_CSUM_VALID
    } else {
        libc::TP_STATUS_CSUMNOTREADY
    }
}

#[repr(align(128))] // as CachePadded: no line shared with another loop
pub(super) struct Rx {
    pub(super) ring: Ring,
    pub(super) source: Arc<Source>,
    /// Drops that have been counted in the ledger.
    pub(super) counted: u64,
    /// The slot that the kernel fills next.
    pub(super) next: usize,
    /// Buffer in which frames that need several buffers are assembled.
    pub(super) scratch: Box<[u8]>,
    /// Use only time stamps of the NIC; else those of the kernel.
    pub(super) hardware_stamps: bool,
    /// [`trusted_status`] of the kernel.
    pub(super) trusted: u32,
    /// Converts time stamps to the loop's clock.
    pub(super) line: Line,
    pub(super) link: Arc<Watch>,
    pub(super) state: RxState,
    pub(super) clock: TscClock,
    pub(super) watch_at: Tsc,
}

impl RxDriver for Rx {
    fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        let before = out.len();
        let now = self.clock.now();
        let (mut frames, mut bytes) = (0, 0);
        // One pass over the ring at most, so that a flood of dropped frames also ends.
        for _ in 0..self.ring.slots() {
            if out.free() == 0 {
                break;
            }
            let slot = self.next;
            // Acquire pairs with the kernel's write barrier and status store (tpacket_rcv,
            // __packet_set_status): the frame is written before.
            let status = self.ring.status(slot).load(Ordering::Acquire);
            if status & libc::TP_STATUS_USER == 0 {
                break;
            }
            let header = self.ring.header(slot);
            if frames == 0 {
                self.line.begin_now();
            }
            let received = self.take(cache, slot, status, &header);
            // Release: the copy is complete before the slot returns to the kernel, which reads the
            // status and then writes the slot (packet_current_rx_frame).
            self.ring
                .status(slot)
                .store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = self.ring.after(slot);
            frames += 1;
            bytes += u64::from(header.tp_len);
            match received {
                Ok(mut mbuf) => {
                    let stamp = mbuf.wire_time();
                    let arrival = stamp.map_or(now, |stamp| self.line.arrival(stamp));
                    origin.stamp(&mut mbuf, arrival);
                    // The frame fits: the capacity was checked at the start of the loop.
                    drop(out.push(mbuf));
                }
                Err(cause) => tally.count_dropped(cause, 1),
            }
        }
        if frames == 0 {
            self.idle(now);
            return 0;
        }
        tally.count_from_wire(frames, bytes);
        out.len() - before
    }

    fn state(&self) -> RxState {
        self.state
    }

    fn arrival_time(&self) -> ArrivalTime {
        if self.hardware_stamps {
            ArrivalTime::Hardware
        } else {
            ArrivalTime::Kernel
        }
    }

    fn event(&self) -> Option<BorrowedFd<'_>> {
        Some(self.source.socket.as_fd())
    }

    fn sync_counters(&mut self, tally: &mut Tally) {
        let (_, all) = self.source.counts();
        let drops = all - self.counted;
        self.counted = all;
        tally.count_from_wire(drops, 0);
        tally.count_dropped(Cause::KernelDrop, drops);
    }

    fn finish(&mut self, tally: &mut Tally) {
        // Another core may be copying a frame into the ring concurrently.
        if self.source.socket.shut().is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
        for _ in 0..self.ring.slots() {
            // Acquire as in `rx`.
            let status = self.ring.status(self.next).load(Ordering::Acquire);
            if status & libc::TP_STATUS_USER == 0 {
                break;
            }
            tally.count_from_wire(1, u64::from(self.ring.header(self.next).tp_len));
            tally.count_dropped(Cause::Aborted, 1);
            self.ring
                .status(self.next)
                .store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = self.ring.after(self.next);
        }
        self.sync_counters(tally);
    }
}

impl Rx {
    /// Copies the frame out of a slot.
    #[inline]
    fn take(
        &mut self,
        cache: &mut PoolCache,
        slot: usize,
        status: u32,
        header: &tpacket2_hdr,
    ) -> Result<Mbuf, Cause> {
        let start = usize::from(header.tp_mac);
        let len = header.tp_len as usize;
        // The slot was too short and the kernel truncated the frame.
        if header.tp_snaplen < header.tp_len {
            return Err(Cause::Oversize);
        }
        // The kernel, or the NIC, removes the outer tag; it is reinserted at its place.
        let mut mbuf = if status & libc::TP_STATUS_VLAN_VALID != 0 {
            let tpid = match status & libc::TP_STATUS_VLAN_TPID_VALID {
                0 => libc::ETH_P_8021Q as u16,
                _ => header.tp_vlan_tpid,
            };
            let tag = u32::from(tpid) << 16 | u32::from(header.tp_vlan_tci);
            self.take_tagged(cache, slot, start, len, tag.to_be_bytes())?
        } else if len <= cache.pool().data_room() {
            let mut mbuf = cache.alloc().ok_or(Cause::NoMbuf)?;
            // A fresh buffer has its whole data room, and the frame is no longer than that.
            let to = mbuf.append(len).ok_or(Cause::Oversize)?;
            if !self.ring.copy_out(slot, start, to) {
                cache.free(mbuf);
                return Err(Cause::DeviceError);
            }
            mbuf
        } else {
            let to = self.scratch.get_mut(..len).ok_or(Cause::DeviceError)?;
            if !self.ring.copy_out(slot, start, to) {
                return Err(Cause::DeviceError);
            }
            alloc_frame(cache, to)?
        };
        if !self.hardware_stamps || status & libc::TP_STATUS_TS_RAW_HARDWARE != 0 {
            let ns = u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec);
            mbuf.set_wire_time(WireTime(ns));
        }
        if status & self.trusted != 0 {
            mbuf.add_flags(MbufFlags::CHECKSUM_TRUSTED);
        }
        Ok(mbuf)
    }

    /// As `take`, with a VLAN tag inserted.
    fn take_tagged(
        &mut self,
        cache: &mut PoolCache,
        slot: usize,
        start: usize,
        len: usize,
        tag: [u8; TAG],
    ) -> Result<Mbuf, Cause> {
        let frame = self
            .scratch
            .get_mut(..len + TAG)
            .ok_or(Cause::DeviceError)?;
        let (addresses, rest) = frame
            .split_at_mut_checked(ADDRESSES)
            .ok_or(Cause::Malformed)?;
        let (to, rest) = rest.split_at_mut_checked(TAG).ok_or(Cause::Malformed)?;
        to.copy_from_slice(&tag);
        let copied = self.ring.copy_out(slot, start, addresses)
            && self.ring.copy_out(slot, start + ADDRESSES, rest);
        if !copied {
            return Err(Cause::DeviceError);
        }
        alloc_frame(cache, frame)
    }

    #[inline]
    fn idle(&mut self, now: Tsc) {
        if now >= self.watch_at {
            self.watch_link(now);
        }
    }

    #[cold]
    fn watch_link(&mut self, now: Tsc) {
        self.watch_at = Tsc(now.0.wrapping_add(self.clock.to_cycles(WATCH)));
        self.state = self.link.look();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use pollux_mempool::{Burst, Mempool, PoolConfig};
    use proptest::prelude::*;

    use super::super::hostile::HostileRing;
    use super::*;

    /// A length or an offset: any value, often near the size of a header, a buffer or a slot.
    fn number() -> impl Strategy<Value = u32> {
        prop_oneof![
            0..100_u32,
            1900..2100_u32,
            any::<u32>(),
            any::<u32>().prop_map(|n| n >> 16)
        ]
    }

    #[test]
    fn verified_checksums_are_trusted_from_linux_6_2_on() {
        let valid = |release| trusted_status(release) & libc::TP_STATUS_CSUM_VALID != 0;
        let fixed = ["6.2", "6.2.0-rc1", "6.18.44-x-v657", "7.0.1", "10.0"];
        assert!(fixed.into_iter().all(valid));
        let others = [
            "6.1.0-18-amd64",
            "5.14.0-503.el9",
            "4.9.335",
            "6",
            "",
            "rolling",
        ];
        assert!(!others.into_iter().any(valid));
    }

    #[test]
    fn a_checksum_that_an_old_kernel_calls_valid_is_verified() {
        let (partial, valid) = (libc::TP_STATUS_CSUMNOTREADY, libc::TP_STATUS_CSUM_VALID);
        let rows = [
            ("5.15.0", 0, false),
            ("5.15.0", valid, false),
            ("5.15.0", partial, true),
            ("6.2.0", 0, false),
            ("6.2.0", valid, true),
            ("6.2.0", partial, true),
        ];
        let pool = Mempool::new(PoolConfig {
            buffers: 64,
            ..PoolConfig::default()
        })
        .unwrap();
        let mut cache = pool.cache(16).unwrap();
        let (mut origin, mut tally) = (Origin::new(0, 0), Tally::new());
        for (release, status, is_trusted) in rows {
            let Some(mut queue) = HostileRing::of_kernel(release) else {
                println!("skipped: a packet socket needs CAP_NET_RAW");
                return;
            };
            queue.post(&tpacket2_hdr {
                tp_status: status,
                tp_len: 60,
                tp_snaplen: 60,
                tp_mac: 82,
                tp_net: 96,
                tp_sec: 0,
                tp_nsec: 0,
                tp_vlan_tci: 0,
                tp_vlan_tpid: 0,
                tp_padding: [0; 4],
            });
            let mut burst = Burst::<4>::new();
            queue.rx(&mut cache, &mut burst.as_mut(), &mut origin, &mut tally);
            let flags = burst.iter().map(pollux_mempool::Mbuf::flags);
            let trusted = flags.map(|flags| flags.contains(MbufFlags::CHECKSUM_TRUSTED));
            assert_eq!(
                trusted.collect::<Vec<_>>(),
                [is_trusted],
                "{release} {status}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        /// Whatever the headers contain, nothing outside the slot is read and every slot is
        /// counted.
        #[test]
        fn lying_headers_are_survived(
            headers in prop::collection::vec(
                (any::<u32>(), number(), number(), number(), any::<u16>(), any::<bool>()),
                1..20,
            ),
        ) {
            let Some(mut queue) = HostileRing::new() else {
                println!("skipped: a packet socket needs CAP_NET_RAW");
                return Ok(());
            };
            let config = PoolConfig { buffers: 64, data_room: 512, ..PoolConfig::default() };
            let pool = Mempool::new(config).unwrap();
            let mut cache = pool.cache(16).unwrap();
            let (mut origin, mut tally) = (Origin::new(0, 0), Tally::new());
            let mut delivered = 0;
            for &(status, len, snaplen, mac, tci, honest) in &headers {
                queue.post(&tpacket2_hdr {
                    tp_status: status,
                    tp_len: len,
                    tp_snaplen: if honest { len } else { snaplen },
                    tp_mac: mac as u16,
                    tp_net: 0,
                    tp_sec: mac,
                    tp_nsec: snaplen,
                    tp_vlan_tci: tci,
                    tp_vlan_tpid: tci,
                    tp_padding: [0; 4],
                });
                let mut burst = Burst::<4>::new();
                delivered += queue.rx(&mut cache, &mut burst.as_mut(), &mut origin, &mut tally);
                prop_assert!(queue.is_drained());
                prop_assert!(burst.iter().all(|mbuf| mbuf.total_len() <= HostileRing::LONGEST));
            }
            let balance = tally.view().balance();
            prop_assert_eq!(balance.from_wire, headers.len() as u64);
            prop_assert_eq!(balance.dropped_total() + delivered as u64, headers.len() as u64);
            drop(cache);
            prop_assert_eq!(pool.available(), 64);
        }
    }
}
