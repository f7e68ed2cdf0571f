//! Shadow mbufs: the `rte_mbuf` of each pool buffer, which represents it in DPDK.
//!
//! Shadow mbuf `i` points at the data room of buffer `i` for as long as the port runs. A frame
//! therefore passes between the pool and DPDK by a few header fields, in either direction, and its
//! bytes stay in place. For DPDK the shadows are a mempool of packet buffers with pinned external
//! memory, whose operations (registered as `pollux`) take from and return to the pool.
//!
//! Ownership: DPDK owns a buffer from when its shadow mbuf is passed to DPDK, as a frame to be sent
//! or by the mempool's dequeue operation, until DPDK passes the shadow mbuf back, as a received
//! frame or by the enqueue operation. Meanwhile no handle of the buffer exists; the receiver of the
//! shadow mbuf makes one ([`ShadowMbufs::take`]). DPDK is trusted to return once what it was given
//! once, as the process trusts it in all else. Free buffers that DPDK caches for a thread, as it
//! does for each of its mempools, are DPDK's too, until [`ShadowMbufs::flush`].
//!
//! A shadow mbuf does not have the flag of external memory (`RTE_MBUF_F_EXTERNAL`), though the
//! mempool has that of pinned buffers, by which drivers find the memory that they map. With the
//! flag DPDK would detach each buffer that it frees and count its sharers
//! (`rte_pktmbuf_prefree_seg`). Without it a shadow mbuf is a direct buffer. The price is that
//! other mbufs cannot attach to it (`rte_pktmbuf_attach`), since DPDK could not find the shadow
//! mbuf from the address of bytes; no driver does that to the frames that it sends.

use std::ffi::{CStr, CString, c_uint, c_void};
use std::mem::{self, MaybeUninit, offset_of};
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use pollux_dpdk_sys as dpdk;
use pollux_mempool::{Burst, IovaMap, Mbuf, MbufMap, MbufSlot, MemoryRegion, Mempool, WINDOW};

use super::eal::{Eal, error_of};

/// Maximum number of frames of one call into DPDK.
pub(super) const BURST: usize = 64;

/// A packet buffer as DPDK sees it, followed by DPDK's private data.
#[repr(C)]
pub(super) struct ShadowMbuf {
    pub(super) mbuf: dpdk::rte_mbuf,
    /// Required for a buffer with external memory; without a callback, and not shared.
    shared: dpdk::rte_mbuf_ext_shared_info,
    /// Gives the fields of neighbouring shadows different lowest 12 address bits: a load that
    /// follows a store to an address with the same bits waits for it.
    apart: [u64; 13],
}

/// Bytes of DPDK's private data behind each `rte_mbuf`.
const PRIVATE: usize = size_of::<ShadowMbuf>() - size_of::<dpdk::rte_mbuf>();

/// Bytes that DPDK requires in front of each element of a mempool (struct rte_mempool_objhdr).
const ELEMENT_HEADER: usize = 64;

/// Bytes from one shadow mbuf to the next: an odd number of cache lines, see [`ShadowMbuf`].
const STRIDE: usize = ELEMENT_HEADER + size_of::<ShadowMbuf>();

const _: () = assert!(size_of::<dpdk::rte_mbuf>() == 128 && STRIDE == 320);

/// Flags of frames whose bytes are not in a buffer of their own mempool.
pub(super) const ELSEWHERE: u64 = dpdk::RTE_MBUF_F_EXTERNAL | dpdk::RTE_MBUF_F_INDIRECT;

/// Offset of a field of an `rte_mbuf` in the window of a shadow mbuf.
macro_rules! place {
    ($field:ident) => {
        offset_of!(dpdk::rte_mbuf, $field) - ShadowMbuf::AT
    };
}

// SAFETY: the offsets are those of an `rte_mbuf`, with which `ShadowMbuf` begins; all its fields
// are numbers and addresses. Shadow mbufs lie `STRIDE` bytes apart (`populate`).
unsafe impl MbufSlot for ShadowMbuf {
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

/// Number of free buffers that DPDK caches for each polling thread; it can be one and a half times
/// as many. A small part of a pool, so that several threads leave enough for the others.
fn cache_size(buffers: u32) -> c_uint {
    (buffers / 16).min(256)
}

/// Name of the operations of a mempool of shadow mbufs.
pub(super) const NAME: &CStr = c"pollux";

/// The shadows of all buffers of a pool.
pub(super) struct ShadowMbufs {
    first: NonNull<ShadowMbuf>,
    mempool: NonNull<dpdk::rte_mempool>,
    pool: Mempool,
    map: MbufMap<ShadowMbuf>,
    /// Buffers given to DPDK minus those returned.
    given: AtomicI64,
    /// The memory of the shadows.
    memory: MemoryRegion,
}

// SAFETY: the shadows are accessed by their buffers' owners alone, and the mempool's operations are
// DPDK's, which may be called on any thread.
unsafe impl Send for ShadowMbufs {}
// SAFETY: as above; all fields are only read.
unsafe impl Sync for ShadowMbufs {}

/// Keeps the shadows for as long as a device may use them. Every holder drops its device first.
pub(super) struct Owner(NonNull<ShadowMbufs>);

// SAFETY: the shadows are `Send`, and this is their only owner.
unsafe impl Send for Owner {}
// SAFETY: as above; it gives out shared references alone.
unsafe impl Sync for Owner {}

impl Deref for Owner {
    type Target = ShadowMbufs;

    #[inline]
    fn deref(&self) -> &ShadowMbufs {
        // SAFETY: allocated by `new`, freed by `drop`, and never borrowed exclusively between.
        unsafe { self.0.as_ref() }
    }
}

impl Owner {
    /// Creates the shadows of a pool's buffers. `iova`: the addresses at which devices see the
    /// region, if any does.
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
                size_of::<ShadowMbuf>() as c_uint,
                cache_size(buffers),
                size_of::<dpdk::rte_pktmbuf_pool_private>() as c_uint,
                dpdk::SOCKET_ID_ANY,
                dpdk::RTE_MEMPOOL_F_NO_SPREAD | dpdk::RTE_MEMPOOL_F_NO_IOVA_CONTIG,
            )
        };
        let mempool = NonNull::new(mempool).ok_or_else(|| error_of("rte_mempool_create_empty"))?;
        // SAFETY: the region has room for at least one element.
        let first = unsafe { memory.as_ptr().add(ELEMENT_HEADER) };
        let shadows = Box::new(ShadowMbufs {
            first: first.cast(),
            mempool,
            pool: pool.clone(),
            // SAFETY: the memory has room for a shadow mbuf for each buffer, and is kept alive with
            // this value.
            map: unsafe { pool.mbuf_map(first) },
            given: AtomicI64::new(0),
            memory,
        });
        // DPDK keeps the address.
        let owner = Self(NonNull::from(Box::leak(shadows)));
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
            // Buffers that DPDK has kept, and the mempool to which it would return them, remain
            // allocated.
            tracing::error!("DPDK has kept {held} buffers of a device that was closed");
            return;
        }
        // SAFETY: no device uses the mempool any more, all its elements are free, and the shadows
        // are not used after this. DPDK takes all elements of a mempool to free it, and these must
        // not be pool buffers.
        unsafe {
            (*self.mempool()).__bindgen_anon_1.pool_data = ptr::null_mut();
            dpdk::rte_mempool_free(self.mempool());
            drop(Box::from_raw(self.0.as_ptr()));
        }
    }
}

impl ShadowMbufs {
    /// Registers the elements of the mempool with DPDK. `this` is `self`, for as long as the
    /// mempool lives.
    fn populate(&self, this: NonNull<Self>) -> Result<(), String> {
        let stride = self.pool.stride().min(usize::from(u16::MAX)) as u16;
        let mut private = dpdk::rte_pktmbuf_pool_private {
            mbuf_data_room_size: stride,
            mbuf_priv_size: PRIVATE as u16,
            flags: dpdk::RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF,
        };
        let mempool = self.mempool.as_ptr();
        let memory = self.memory.as_ptr().as_ptr();
        // SAFETY: a mempool that no other code knows yet, with room for this private data, and
        // memory for all its elements, which outlives it. Its operations run while it is populated,
        // and find no pool to work on.
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

    /// Initialises a shadow mbuf: all constant fields, and those that DPDK expects of a free
    /// buffer.
    fn write(&self, index: u32, iova: Option<&IovaMap>) -> Result<(), String> {
        let (offset, stride) = (
            self.pool.layout().offset(index as usize),
            self.pool.stride(),
        );
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
        let shadow = unsafe { self.shadow(index).as_ptr() };
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
            // SAFETY: a place inside the shadow mbuf.
            shinfo: unsafe { &raw mut (*shadow).shared },
            ..dpdk::rte_mbuf::default()
        };
        let shared = dpdk::rte_mbuf_ext_shared_info {
            refcnt: 1,
            ..dpdk::rte_mbuf_ext_shared_info::default()
        };
        // SAFETY: the shadow mbuf lies in memory of this process, and DPDK has not been given it.
        unsafe {
            shadow.write(ShadowMbuf {
                mbuf,
                shared,
                apart: [0; 13],
            });
        };
        Ok(())
    }

    /// DPDK's handle of the shadows.
    #[inline]
    pub(super) fn mempool(&self) -> *mut dpdk::rte_mempool {
        self.mempool.as_ptr()
    }

    /// The pool.
    pub(super) fn pool(&self) -> &Mempool {
        &self.pool
    }

    /// The shadow mbuf of the buffer with this number.
    ///
    /// # Safety
    /// The pool has such a buffer.
    #[inline(always)]
    unsafe fn shadow(&self, index: u32) -> NonNull<ShadowMbuf> {
        // SAFETY: there is a shadow mbuf for each buffer.
        unsafe { self.first.byte_add(index as usize * STRIDE) }
    }

    /// The shadow mbuf of this buffer, if it belongs to this pool.
    #[inline(always)]
    pub(super) fn of(&self, mbuf: &Mbuf) -> Option<NonNull<ShadowMbuf>> {
        self.map.element(mbuf).map(NonNull::cast)
    }

    /// The buffer of a shadow mbuf that DPDK has returned.
    ///
    /// # Safety
    /// The shadow mbuf belongs to this mempool. DPDK was given it, upon which the buffer's handle
    /// was forgotten, and has returned it to the caller, who takes it once.
    #[inline(always)]
    pub(super) unsafe fn take(&self, shadow: NonNull<ShadowMbuf>) -> Mbuf {
        // SAFETY: by the caller's promise.
        unsafe { self.map.handle(shadow.cast()) }
    }

    /// The map between shadows and buffers.
    #[inline(always)]
    pub(super) fn map(&self) -> &MbufMap<ShadowMbuf> {
        &self.map
    }

    /// Counts the buffers that a queue has given to DPDK, less those returned to it.
    pub(super) fn count_given(&self, buffers: i64) {
        self.given.fetch_add(buffers, Ordering::Relaxed);
    }

    /// Gives DPDK as many free buffers as `out` has space for, or none.
    pub(super) fn lend(&self, out: &mut [MaybeUninit<*mut c_void>]) -> bool {
        let mut filled = 0;
        while filled < out.len() {
            let mut burst = Burst::<BURST>::new();
            let wanted = BURST.min(out.len() - filled);
            let got = self.pool.alloc_burst(&mut burst, wanted);
            burst.take_all(|mbuf| {
                // All belong to this pool, so each has a shadow mbuf.
                if let Some(shadow) = self.of(&mbuf) {
                    out[filled].write(shadow.as_ptr().cast());
                    filled += 1;
                    mem::forget(mbuf);
                }
            });
            if got < wanted {
                for shadow in &out[..filled] {
                    // SAFETY: initialised above, where the handle was forgotten; DPDK does not get
                    // it.
                    drop(unsafe {
                        NonNull::new(shadow.assume_init()).map(|at| self.take(at.cast()))
                    });
                }
                return false;
            }
        }
        self.count_given(filled as i64);
        true
    }

    /// Takes back free buffers from DPDK.
    ///
    /// # Safety
    /// As for [`take`](Self::take), for each of them.
    pub(super) unsafe fn take_back(&self, shadows: &[*mut c_void]) {
        for part in shadows.chunks(BURST) {
            let mut burst = Burst::<BURST>::new();
            burst.as_mut().extend_from(part, |_, &shadow| {
                // SAFETY: by the caller's promise.
                NonNull::new(shadow).map(|shadow| unsafe { self.take(shadow.cast()) })
            });
            self.pool.free_burst(&mut burst);
        }
        self.count_given(-(shadows.len() as i64));
    }

    /// Takes back the buffers that DPDK caches for its threads. Only while no thread uses them in
    /// DPDK.
    pub(super) fn flush(&self) {
        for lcore in 0..dpdk::RTE_MAX_LCORE {
            // SAFETY: the cache of this mempool for that number, which no thread uses now.
            unsafe {
                let cache = dpdk::rte_mempool_default_cache(self.mempool(), lcore);
                if !cache.is_null() {
                    dpdk::rte_mempool_cache_flush(cache, self.mempool());
                }
            }
        }
    }

    /// Number of buffers that DPDK holds. Only while no thread uses them in DPDK, all queues have
    /// [counted](Self::count_given), and DPDK's caches are [flushed](Self::flush).
    pub(super) fn held(&self) -> i64 {
        self.given.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Content of a shadow mbuf's window: whether the frame is plain, the offset of its data, and
    /// its length.
    fn read(mbuf: &dpdk::rte_mbuf) -> (bool, u16, u16, u32) {
        // SAFETY: the window lies in the structure, which has no padding there.
        let window = unsafe {
            ptr::from_ref(mbuf)
                .byte_add(ShadowMbuf::AT)
                .cast::<[u8; WINDOW]>()
                .read()
        };
        let required = ShadowMbuf::REQUIRED
            .iter()
            .zip(ShadowMbuf::PLAIN)
            .zip(window);
        let half = |at: usize| u16::from_le_bytes([window[at], window[at + 1]]);
        let total =
            u32::from(half(ShadowMbuf::TOTAL)) | u32::from(half(ShadowMbuf::TOTAL + 2)) << 16;
        (
            required
                .into_iter()
                .all(|((required, plain), is)| (is ^ plain) & required == 0),
            half(ShadowMbuf::OFFSET),
            half(ShadowMbuf::LEN),
            total,
        )
    }

    #[test]
    fn a_window_tells_plain_frames_from_others() {
        // As a device passes it: with flags, a hash, tags and a port of its own.
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
            assert!(!read(&mbuf).0, "memory of another owner");
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
