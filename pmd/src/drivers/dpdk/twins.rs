//! Each buffer of a pool has a twin: the `rte_mbuf` by which DPDK knows it.
//!
//! Twin `i` points at the room of buffer `i` for as long as the port runs, so a frame changes sides
//! by a few header fields, whichever way it goes, and its bytes stay where they are. To DPDK the
//! twins are a mempool of packet buffers with pinned external memory, whose operations (registered
//! as `pollux`) take from and return to our pool.
//!
//! Who owns what: a buffer is DPDK's from the moment that its twin is handed to DPDK, as a frame to
//! be sent or by the mempool's dequeue operation, to the moment that DPDK hands the twin back, as a
//! received frame or by the enqueue operation. Meanwhile nobody has a handle of it; who gets the
//! twin makes one ([`Twins::take`]). DPDK is trusted to hand back once what
//! it was given once, as the process trusts it in all else. Free buffers that DPDK keeps for a
//! thread, as it does for each of its mempools, are DPDK's too, until [`Twins::flush`].
//!
//! A twin does not have the flag of external memory (`RTE_MBUF_F_EXTERNAL`), though the mempool has
//! that of pinned buffers, by which drivers find the memory that they map: with it DPDK would detach
//! each buffer that it frees and count its sharers (`rte_pktmbuf_prefree_seg`). Without it a twin is
//! a direct buffer. What is lost is that others attach to it (`rte_pktmbuf_attach`), since from the
//! address of bytes DPDK could not go back to the twin; no driver does that to what it sends.

use std::ffi::{CStr, CString, c_uint, c_void};
use std::mem::{self, MaybeUninit, offset_of};
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use pollux_dpdk_sys as dpdk;
use pollux_mempool::{Beside, Burst, Element, IovaMap, Mbuf, MemoryRegion, Mempool, WINDOW};

use super::eal::{Eal, error_of};

/// Most frames that move in one call into DPDK.
pub(super) const BURST: usize = 64;

/// A packet buffer as DPDK sees it, and behind it what it calls private data.
#[repr(C)]
pub(super) struct Twin {
    pub(super) mbuf: dpdk::rte_mbuf,
    /// What a buffer with external memory must have; nobody calls back, nobody shares.
    shared: dpdk::rte_mbuf_ext_shared_info,
    /// Keeps the fields of twins near each other from having the same lowest 12 bits of their
    /// addresses: a load that follows a store to such an address waits for it.
    apart: [u64; 13],
}

/// Bytes of DPDK's private data behind each `rte_mbuf`.
const PRIVATE: usize = size_of::<Twin>() - size_of::<dpdk::rte_mbuf>();

/// Bytes that DPDK wants in front of each element of a mempool (struct rte_mempool_objhdr).
const ELEMENT_HEADER: usize = 64;

/// Bytes from one twin to the next: an odd number of cache lines, see [`Twin`].
const STRIDE: usize = ELEMENT_HEADER + size_of::<Twin>();

const _: () = assert!(size_of::<dpdk::rte_mbuf>() == 128 && STRIDE == 320);

/// Frames whose bytes are not in a buffer of the mempool that they are of.
pub(super) const ELSEWHERE: u64 = dpdk::RTE_MBUF_F_EXTERNAL | dpdk::RTE_MBUF_F_INDIRECT;

/// Where a field of an `rte_mbuf` is in the window of a twin.
macro_rules! place {
    ($field:ident) => {
        offset_of!(dpdk::rte_mbuf, $field) - Twin::AT
    };
}

// SAFETY: the places are those of an `rte_mbuf`, which `Twin` begins with; all of it are numbers and
// addresses. Twins lie `STRIDE` bytes apart (`populate`).
unsafe impl Element for Twin {
    const SPACING: usize = STRIDE;
    const AT: usize = offset_of!(dpdk::rte_mbuf, data_off);
    const OFFSET: usize = place!(data_off);
    const LEN: usize = place!(data_len);
    const TOTAL: usize = place!(pkt_len);
    const HEADROOM: u16 = dpdk::RTE_PKTMBUF_HEADROOM as u16;
    const PLAIN: [u8; WINDOW] = {
        let mut plain = [0; WINDOW];
        plain[place!(refcnt)] = 1;
        plain[place!(nb_segs)] = 1;
        // RTE_MBUF_PORT_INVALID
        plain[place!(port)] = u8::MAX;
        plain[place!(port) + 1] = u8::MAX;
        plain
    };
    const REQUIRED: [u8; WINDOW] = {
        let mut required = [0; WINDOW];
        let mut i = 0;
        while i < 2 {
            required[place!(refcnt) + i] = u8::MAX;
            required[place!(nb_segs) + i] = u8::MAX;
            i += 1;
        }
        i = 0;
        while i < 8 {
            required[place!(ol_flags) + i] = ELSEWHERE.to_le_bytes()[i];
            i += 1;
        }
        required
    };
}

/// Free buffers that DPDK keeps for each thread that polls; it can be one and a half times as many.
/// A small part of a pool, so that several threads leave enough for the others.
fn cache_size(buffers: u32) -> c_uint {
    (buffers / 16).min(256)
}

/// Name of the operations of a mempool of twins.
pub(super) const NAME: &CStr = c"pollux";

/// The twins of all buffers of a pool.
pub(super) struct Twins {
    first: NonNull<Twin>,
    mempool: NonNull<dpdk::rte_mempool>,
    pool: Mempool,
    beside: Beside<Twin>,
    /// Buffers that DPDK has been given less those that it has handed back.
    given: AtomicI64,
    /// What the twins lie in.
    memory: MemoryRegion,
}

// SAFETY: the twins are reached through their buffers' owners alone, and the mempool is DPDK's,
// whose operations on it may be called on any thread.
unsafe impl Send for Twins {}
// SAFETY: as above; all fields are only read.
unsafe impl Sync for Twins {}

/// Keeps the twins for as long as a device may have them. Every holder drops its device first.
pub(super) struct Owner(NonNull<Twins>);

// SAFETY: the twins are, and this is the one owner of them.
unsafe impl Send for Owner {}
// SAFETY: as above; it gives out shared references alone.
unsafe impl Sync for Owner {}

impl Deref for Owner {
    type Target = Twins;

    #[inline]
    fn deref(&self) -> &Twins {
        // SAFETY: allocated by `new`, freed by `drop`, and never borrowed exclusively between.
        unsafe { self.0.as_ref() }
    }
}

impl Owner {
    /// Makes the twins of a pool's buffers. `iova`: how devices see the region, if any does.
    pub(super) fn new(_eal: &Eal, pool: &Mempool, iova: Option<&IovaMap>) -> Result<Self, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let buffers = u32::try_from(pool.buffers()).map_err(|_| "too many buffers")?;
        let memory = MemoryRegion::builder(pool.buffers() * STRIDE)
            .build()
            .map_err(|error| error.to_string())?;
        let name = CString::new(format!("pollux{}", NEXT.fetch_add(1, Ordering::Relaxed)))
            .map_err(|error| error.to_string())?;
        // SAFETY: a name and plain numbers; EAL runs.
        let mempool = unsafe {
            dpdk::rte_mempool_create_empty(
                name.as_ptr(),
                buffers,
                size_of::<Twin>() as c_uint,
                cache_size(buffers),
                size_of::<dpdk::rte_pktmbuf_pool_private>() as c_uint,
                dpdk::SOCKET_ID_ANY,
                dpdk::RTE_MEMPOOL_F_NO_SPREAD | dpdk::RTE_MEMPOOL_F_NO_IOVA_CONTIG,
            )
        };
        let mempool = NonNull::new(mempool).ok_or_else(|| error_of("rte_mempool_create_empty"))?;
        // SAFETY: the region has room for at least one element.
        let first = unsafe { memory.as_ptr().add(ELEMENT_HEADER) };
        let twins = Box::new(Twins {
            first: first.cast(),
            mempool,
            pool: pool.clone(),
            // SAFETY: the memory has room for a twin for each buffer, and is kept beside this.
            beside: unsafe { pool.beside(first) },
            given: AtomicI64::new(0),
            memory,
        });
        // DPDK keeps the address.
        let owner = Self(NonNull::from(Box::leak(twins)));
        owner.populate(owner.0)?;
        (0..buffers).try_for_each(|index| owner.write(index, iova))?;
        Ok(owner)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.flush();
        let held = self.held();
        if held != 0 {
            // What DPDK has kept, and where it would give it back, stays its own.
            tracing::error!("DPDK has kept {held} buffers of a device that was closed");
            return;
        }
        // SAFETY: no device uses the mempool any more, all its elements are free, and the twins
        // are not used after this. To free a mempool DPDK takes all its elements, which shall not
        // be our buffers.
        unsafe {
            (*self.mempool()).__bindgen_anon_1.pool_data = ptr::null_mut();
            dpdk::rte_mempool_free(self.mempool());
            drop(Box::from_raw(self.0.as_ptr()));
        }
    }
}

impl Twins {
    /// Tells DPDK where the elements of the mempool lie. `this` is `self`, for as long as the mempool
    /// lives.
    fn populate(&self, this: NonNull<Self>) -> Result<(), String> {
        let stride = self.pool.stride().min(usize::from(u16::MAX)) as u16;
        let mut private = dpdk::rte_pktmbuf_pool_private {
            mbuf_data_room_size: stride,
            mbuf_priv_size: PRIVATE as u16,
            flags: dpdk::RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF,
        };
        let mempool = self.mempool.as_ptr();
        let memory = self.memory.as_ptr().as_ptr();
        // SAFETY: a mempool that nobody else knows yet, with room for this private data, and memory
        // for all its elements, which outlives it. Its operations run while it is populated, and
        // find no pool to work on.
        let populated = unsafe {
            if dpdk::rte_mempool_set_ops_byname(mempool, NAME.as_ptr(), ptr::null_mut()) != 0 {
                return Err(error_of("rte_mempool_set_ops_byname"));
            }
            dpdk::rte_pktmbuf_pool_init(mempool, (&raw mut private).cast());
            let iova = memory.addr() as u64;
            let len = self.pool.buffers() * STRIDE;
            dpdk::rte_mempool_populate_iova(
                mempool,
                memory.cast(),
                iova,
                len,
                None,
                ptr::null_mut(),
            )
        };
        // SAFETY: as above.
        let made = unsafe { mempool.as_mut() }.ok_or("no mempool")?;
        let header = made.header_size as usize;
        let stride = header + made.elt_size as usize + made.trailer_size as usize;
        if populated as usize != self.pool.buffers() || header != ELEMENT_HEADER || stride != STRIDE
        {
            return Err(format!(
                "DPDK lays its buffers out in another way than was expected (header {header}, \
                 stride {stride}, {populated} of them)"
            ));
        }
        made.__bindgen_anon_1.pool_data = this.as_ptr().cast();
        Ok(())
    }

    /// Fills in a twin: all that stays the same, and what DPDK expects of a free buffer.
    fn write(&self, index: u32, iova: Option<&IovaMap>) -> Result<(), String> {
        let (offset, stride) = (self.pool.rooms().offset(index as usize), self.pool.stride());
        let room = self
            .pool
            .region()
            .ptr_at(offset, stride)
            .map_err(|error| error.to_string())?;
        let iova = match iova {
            Some(map) => {
                map.iova(offset, stride)
                    .map_err(|error| error.to_string())?
                    .0
            }
            None => room.addr().get() as u64,
        };
        // SAFETY: an index of the pool.
        let twin = unsafe { self.twin(index).as_ptr() };
        let mbuf = dpdk::rte_mbuf {
            buf_addr: room.as_ptr().cast(),
            buf_iova: iova,
            data_off: dpdk::RTE_PKTMBUF_HEADROOM as u16,
            refcnt: 1,
            nb_segs: 1,
            port: u16::MAX,
            buf_len: stride.min(usize::from(u16::MAX)) as u16,
            pool: self.mempool.as_ptr(),
            priv_size: PRIVATE as u16,
            // SAFETY: a place inside the twin.
            shinfo: unsafe { &raw mut (*twin).shared },
            ..dpdk::rte_mbuf::default()
        };
        let shared = dpdk::rte_mbuf_ext_shared_info {
            refcnt: 1,
            ..dpdk::rte_mbuf_ext_shared_info::default()
        };
        // SAFETY: the twin lies in our memory, and DPDK has not been given it.
        unsafe {
            twin.write(Twin {
                mbuf,
                shared,
                apart: [0; 13],
            });
        };
        Ok(())
    }

    /// DPDK's name for the twins.
    #[inline]
    pub(super) fn mempool(&self) -> *mut dpdk::rte_mempool {
        self.mempool.as_ptr()
    }

    /// Our pool.
    pub(super) fn pool(&self) -> &Mempool {
        &self.pool
    }

    /// The twin of the buffer with this number.
    ///
    /// # Safety
    /// The pool has such a buffer.
    #[inline(always)]
    unsafe fn twin(&self, index: u32) -> NonNull<Twin> {
        // SAFETY: there is a twin for each buffer.
        unsafe { self.first.byte_add(index as usize * STRIDE) }
    }

    /// The twin of this buffer, if it is one of this pool.
    #[inline(always)]
    pub(super) fn of(&self, mbuf: &Mbuf) -> Option<NonNull<Twin>> {
        self.beside.element(mbuf).map(NonNull::cast)
    }

    /// The buffer of a twin that DPDK has handed back.
    ///
    /// # Safety
    /// `twin` is one of this mempool's. DPDK was given it, which forgot the buffer's handle, and
    /// has handed it back to the caller, who takes it once.
    #[inline(always)]
    pub(super) unsafe fn take(&self, twin: NonNull<Twin>) -> Mbuf {
        // SAFETY: by the caller's promise.
        unsafe { self.beside.handle(twin.cast()) }
    }

    /// The way between twins and buffers.
    #[inline(always)]
    pub(super) fn beside(&self) -> &Beside<Twin> {
        &self.beside
    }

    /// Counts what a queue has given to DPDK, less what it has been handed.
    pub(super) fn count_given(&self, buffers: i64) {
        self.given.fetch_add(buffers, Ordering::Relaxed);
    }

    /// DPDK takes as many free buffers as there is room for, or none.
    pub(super) fn lend(&self, out: &mut [MaybeUninit<*mut c_void>]) -> bool {
        let mut filled = 0;
        while filled < out.len() {
            let mut burst = Burst::<BURST>::new();
            let wanted = BURST.min(out.len() - filled);
            let got = self.pool.alloc_burst(&mut burst, wanted);
            burst.take_all(|mbuf| {
                // All are of this pool, so each has a twin.
                if let Some(twin) = self.of(&mbuf) {
                    out[filled].write(twin.as_ptr().cast());
                    filled += 1;
                    mem::forget(mbuf);
                }
            });
            if got < wanted {
                for twin in &out[..filled] {
                    // SAFETY: filled in above, where the handle was forgotten; DPDK does not get it.
                    drop(unsafe {
                        NonNull::new(twin.assume_init()).map(|at| self.take(at.cast()))
                    });
                }
                return false;
            }
        }
        self.count_given(filled as i64);
        true
    }

    /// DPDK hands free buffers back.
    ///
    /// # Safety
    /// As for [`take`](Self::take), for each of them.
    pub(super) unsafe fn take_back(&self, twins: &[*mut c_void]) {
        for part in twins.chunks(BURST) {
            let mut burst = Burst::<BURST>::new();
            burst.as_mut().extend_from(part, |_, &twin| {
                // SAFETY: by the caller's promise.
                NonNull::new(twin).map(|twin| unsafe { self.take(twin.cast()) })
            });
            self.pool.free_burst(&mut burst);
        }
        self.count_given(-(twins.len() as i64));
    }

    /// Takes back what DPDK keeps for its threads. Only when no thread is in DPDK with them.
    pub(super) fn flush(&self) {
        for lcore in 0..dpdk::RTE_MAX_LCORE {
            // SAFETY: the cache of this mempool for that number, which nobody uses now.
            unsafe {
                let cache = dpdk::rte_mempool_default_cache(self.mempool(), lcore);
                if !cache.is_null() {
                    dpdk::rte_mempool_cache_flush(cache, self.mempool());
                }
            }
        }
    }

    /// Buffers that DPDK has. Only when no thread is in DPDK with them, all queues have
    /// [counted](Self::count_given), and what DPDK keeps is [back](Self::flush).
    pub(super) fn held(&self) -> i64 {
        self.given.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the window of a twin says: whether the frame is plain, where its data begins, how long
    /// it is.
    fn read(mbuf: &dpdk::rte_mbuf) -> (bool, u16, u16, u32) {
        // SAFETY: the window lies in the structure, which has no padding there.
        let window = unsafe {
            ptr::from_ref(mbuf)
                .byte_add(Twin::AT)
                .cast::<[u8; WINDOW]>()
                .read()
        };
        let required = Twin::REQUIRED.iter().zip(Twin::PLAIN).zip(window);
        let half = |at: usize| u16::from_le_bytes([window[at], window[at + 1]]);
        let total = u32::from(half(Twin::TOTAL)) | u32::from(half(Twin::TOTAL + 2)) << 16;
        (
            required
                .into_iter()
                .all(|((required, plain), is)| (is ^ plain) & required == 0),
            half(Twin::OFFSET),
            half(Twin::LEN),
            total,
        )
    }

    #[test]
    fn a_window_tells_plain_frames_from_others() {
        // As a device hands it over: with flags, a hash, tags and a port of its own.
        let mut plain = dpdk::rte_mbuf {
            data_off: 137,
            refcnt: 1,
            nb_segs: 1,
            port: 3,
            ol_flags: u64::from(dpdk::RTE_MBUF_F_RX_RSS_HASH | dpdk::RTE_MBUF_F_RX_IP_CKSUM_GOOD),
            pkt_len: 70_000,
            data_len: 1518,
            vlan_tci: 0x1234,
            ..dpdk::rte_mbuf::default()
        };
        plain.__bindgen_anon_2.hash.rss = u32::MAX;
        assert_eq!(read(&plain), (true, 137, 1518, 70_000));
        for flag in [dpdk::RTE_MBUF_F_EXTERNAL, dpdk::RTE_MBUF_F_INDIRECT] {
            let mbuf = dpdk::rte_mbuf {
                ol_flags: plain.ol_flags | flag,
                ..plain
            };
            assert!(!read(&mbuf).0, "memory of somebody else");
        }
        for count in [0, 2, 257] {
            assert!(
                !read(&dpdk::rte_mbuf {
                    refcnt: count,
                    ..plain
                })
                .0,
                "{count} owners"
            );
            assert!(
                !read(&dpdk::rte_mbuf {
                    nb_segs: count,
                    ..plain
                })
                .0,
                "{count} segments"
            );
        }
    }
}
