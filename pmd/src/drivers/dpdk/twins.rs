//! Each buffer of a pool has a twin: the `rte_mbuf` by which DPDK knows it.
//!
//! Twin `i` points at the room of buffer `i` for as long as the port runs, so a frame changes sides
//! by a few header fields, whichever way it goes, and its bytes stay where they are. To DPDK the
//! twins are a mempool of packet buffers with pinned external memory, whose operations (registered
//! as `pollux`) take from and return to our pool.
//!
//! Who owns what: while DPDK may reach a buffer, its twin holds the handle. The handle is put there
//! before DPDK learns of the twin, and whoever gets the twin back from DPDK takes it out: received
//! frames in [`Twins::take`], all others in the mempool's enqueue operation. DPDK calls that on any
//! thread: while a queue of ours is in a burst call, on its thread, buffers go by way of the poll
//! loop's cache ([`during`]); otherwise by way of the pool's depot.

use std::ffi::{CString, c_uint};
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use dpdk_sys as dpdk;
use pollux_mempool::{IovaMap, Mbuf, MemoryRegion, Mempool, PoolId};

use super::eal::{Eal, error_of};
use super::operations::NAME;

/// Most frames that move in one call into DPDK.
pub(super) const BURST: usize = 64;

/// A packet buffer as DPDK sees it, and behind it what it calls private data.
#[repr(C)]
pub(super) struct Twin {
    pub(super) mbuf: dpdk::rte_mbuf,
    /// What a buffer with external memory must have; nobody calls back, nobody shares.
    shared: dpdk::rte_mbuf_ext_shared_info,
    /// The buffer, while DPDK may reach it.
    held: Option<Mbuf>,
    /// Keeps the fields of twins near each other from having the same lowest 12 bits of their
    /// addresses: a load that follows a store to such an address waits for it.
    apart: [u64; 12],
}

/// Bytes of DPDK's private data behind each `rte_mbuf`.
const PRIVATE: usize = size_of::<Twin>() - size_of::<dpdk::rte_mbuf>();

/// Bytes that DPDK wants in front of each element of a mempool (struct rte_mempool_objhdr).
const ELEMENT_HEADER: usize = 64;

/// Bytes from one twin to the next: an odd number of cache lines, see [`Twin`].
const STRIDE: usize = ELEMENT_HEADER + size_of::<Twin>();

const _: () = assert!(size_of::<dpdk::rte_mbuf>() == 128 && STRIDE == 320);

/// The twins of all buffers of a pool.
pub(super) struct Twins {
    first: NonNull<Twin>,
    mempool: NonNull<dpdk::rte_mempool>,
    pool: Mempool,
    id: PoolId,
    /// What the twins lie in.
    memory: MemoryRegion,
}

// SAFETY: the twins are reached through their buffers' owners alone, and the mempool is DPDK's,
// whose operations on it may be called on any thread.
unsafe impl Send for Twins {}
// SAFETY: as above; all fields are only read.
unsafe impl Sync for Twins {}

/// Keeps the twins for as long as a device may have them. Every holder drops its device first.
pub(super) struct Owner(ManuallyDrop<Box<Twins>>);

impl Deref for Owner {
    type Target = Twins;

    #[inline]
    fn deref(&self) -> &Twins {
        &self.0
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
                0, // ours is the cache of the poll loop
                size_of::<dpdk::rte_pktmbuf_pool_private>() as c_uint,
                dpdk::SOCKET_ID_ANY,
                dpdk::RTE_MEMPOOL_F_NO_SPREAD | dpdk::RTE_MEMPOOL_F_NO_IOVA_CONTIG,
            )
        };
        let mempool = NonNull::new(mempool).ok_or_else(|| error_of("rte_mempool_create_empty"))?;
        let twins = Box::new(Twins {
            // SAFETY: the region has room for at least one element.
            first: unsafe { memory.as_ptr().add(ELEMENT_HEADER) }.cast(),
            mempool,
            pool: pool.clone(),
            id: pool.id(),
            memory,
        });
        let made = twins
            .populate()
            .and_then(|()| (0..buffers).try_for_each(|index| twins.write(index, iova)));
        let owner = Self(ManuallyDrop::new(twins));
        made.map(|()| owner)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let held = self.held();
        if held > 0 {
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
            ManuallyDrop::drop(&mut self.0);
        }
    }
}

impl Twins {
    /// Tells DPDK where the elements of the mempool lie.
    fn populate(&self) -> Result<(), String> {
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
        made.__bindgen_anon_1.pool_data = ptr::from_ref(self).cast_mut().cast();
        Ok(())
    }

    /// Fills in a twin: all that stays the same, and what DPDK expects of a free buffer.
    fn write(&self, index: u32, iova: Option<&IovaMap>) -> Result<(), String> {
        let (offset, stride) = (index as usize * self.pool.stride(), self.pool.stride());
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
                held: None,
                apart: [0; 12],
            });
        };
        Ok(())
    }

    /// DPDK's name for the twins.
    #[inline]
    pub(super) fn mempool(&self) -> *mut dpdk::rte_mempool {
        self.mempool.as_ptr()
    }

    /// Identity of our pool.
    #[inline]
    pub(super) fn id(&self) -> PoolId {
        self.id
    }

    /// Our pool.
    pub(super) fn pool(&self) -> &Mempool {
        &self.pool
    }

    /// The twin of the buffer with this number.
    ///
    /// # Safety
    /// The pool has such a buffer.
    #[inline]
    pub(super) unsafe fn twin(&self, index: u32) -> NonNull<Twin> {
        // SAFETY: there is a twin for each buffer.
        unsafe { self.first.byte_add(index as usize * STRIDE) }
    }

    /// The twin of this buffer, if it is one of this pool.
    #[inline]
    pub(super) fn of(&self, mbuf: &Mbuf) -> Option<NonNull<Twin>> {
        // SAFETY: a buffer of the pool.
        (mbuf.pool_id() == self.id).then(|| unsafe { self.twin(mbuf.index()) })
    }

    /// Gives a buffer to its twin, before DPDK gets it.
    ///
    /// # Safety
    /// It is the buffer's twin, and DPDK does not have it.
    #[inline]
    pub(super) unsafe fn hold(twin: NonNull<Twin>, mbuf: Mbuf) {
        // SAFETY: who owns a buffer that DPDK does not have is the only one at its twin. What was
        // held has been taken, or was a copy that counts no more.
        unsafe { (&raw mut (*twin.as_ptr()).held).write(Some(mbuf)) };
    }

    /// Takes the buffer out of a twin that DPDK has given back; `None` if it was not DPDK's to give.
    ///
    /// # Safety
    /// `twin` is one of this mempool's, and DPDK has given it up to the caller.
    #[inline]
    pub(super) unsafe fn take(twin: NonNull<Twin>) -> Option<Mbuf> {
        // SAFETY: by the caller's promise nobody else is at the twin.
        unsafe { (*twin.as_ptr()).held.take() }
    }

    /// Buffers that DPDK holds. Only when no thread is in DPDK with them.
    pub(super) fn held(&self) -> usize {
        (0..self.pool.buffers() as u32)
            // SAFETY: every index of the pool has a twin; nobody else is at it, as said above.
            .filter(|&index| unsafe { (*self.twin(index).as_ptr()).held.is_some() })
            .count()
    }
}
