//! The operations of a mempool of twins: how DPDK takes buffers from our pool and gives them back.
//!
//! DPDK calls them on any thread. While a queue of ours is in a burst call they work, on its thread,
//! with the poll loop's cache ([`during`]); otherwise with the pool's depot.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::{self, MaybeUninit};
use std::ptr::{self, NonNull};

use dpdk_sys as dpdk;
use pollux_mempool::{Burst, PoolCache};

use super::twins::{BURST, Twin, Twins};

/// What the operations of a mempool work with while a queue of ours is in a burst call.
struct Turn<'a> {
    mempool: *const dpdk::rte_mempool,
    cache: &'a mut PoolCache,
    /// Whether `cache` is of the pool that the twins are of.
    own: bool,
    /// Twins of freed buffers, to be returned together: the first `count`.
    freed: [MaybeUninit<NonNull<Twin>>; BURST],
    count: usize,
}

impl Turn<'_> {
    /// Returns what has been freed to the cache.
    #[inline]
    fn flush(&mut self) {
        let mut burst = Burst::<BURST>::new();
        for twin in &self.freed[..self.count] {
            // SAFETY: filled in by `enqueue`; DPDK has given it up.
            if let Some(mbuf) = unsafe { Twins::take(twin.assume_init()) } {
                // There is room: as many as the burst has at most.
                let _ = burst.push(mbuf);
            }
        }
        self.count = 0;
        self.cache.free_burst(&mut burst);
    }
}

thread_local! {
    static TURN: Cell<Option<NonNull<Turn<'static>>>> = const { Cell::new(None) };
}

/// Calls into DPDK so that buffers which it takes and frees come from and go to `cache`.
#[inline]
pub(super) fn during<T>(twins: &Twins, cache: &mut PoolCache, call: impl FnOnce() -> T) -> T {
    let mut turn = Turn {
        mempool: twins.mempool(),
        own: cache.pool().id() == twins.id(),
        cache,
        freed: [const { MaybeUninit::uninit() }; BURST],
        count: 0,
    };
    TURN.set(Some(NonNull::from(&mut turn).cast()));
    let result = call();
    TURN.set(None);
    if turn.count > 0 {
        turn.flush();
    }
    result
}

/// Name of the operations.
pub(super) const NAME: &CStr = c"pollux";

/// The operations of all mempools of twins.
pub(super) static OPERATIONS: dpdk::rte_mempool_ops = {
    let mut name = [0; 32];
    let mut i = 0;
    while i < NAME.count_bytes() {
        name[i] = NAME.to_bytes()[i] as c_char;
        i += 1;
    }
    dpdk::rte_mempool_ops {
        name,
        alloc: Some(create),
        free: Some(destroy),
        enqueue: Some(enqueue),
        dequeue: Some(dequeue),
        get_count: Some(count),
        calc_mem_size: None,
        populate: None,
        get_info: None,
        dequeue_contig_blocks: None,
    }
};

unsafe extern "C" fn create(_mempool: *mut dpdk::rte_mempool) -> c_int {
    0
}

unsafe extern "C" fn destroy(_mempool: *mut dpdk::rte_mempool) {}

/// The twins behind a mempool; `None` while it is being populated or freed.
///
/// # Safety
/// `mempool` is one of ours.
#[inline]
unsafe fn twins_of<'a>(mempool: *const dpdk::rte_mempool) -> Option<&'a Twins> {
    // SAFETY: `populate` put this there; the mempool is gone before its twins are.
    unsafe {
        (*mempool)
            .__bindgen_anon_1
            .pool_data
            .cast::<Twins>()
            .as_ref()
    }
}

/// The turn that this thread is in, if it is one of this mempool.
#[inline]
fn turn_of<'a>(mempool: *const dpdk::rte_mempool) -> Option<&'a mut Turn<'a>> {
    // SAFETY: `during` is in this thread's frame below, and does not touch the turn until the call
    // into DPDK, which we are inside of, has returned. Operations do not call one another.
    let turn: &mut Turn<'a> = unsafe { TURN.get()?.cast().as_mut() };
    (turn.mempool == mempool).then_some(turn)
}

/// DPDK frees buffers: many drivers one by one, so that this is the case that is made short.
unsafe extern "C" fn enqueue(
    mempool: *mut dpdk::rte_mempool,
    objects: *const *mut c_void,
    n: c_uint,
) -> c_int {
    if n == 1
        && let Some(turn) = turn_of(mempool)
        && let Some(place) = turn.freed.get_mut(turn.count)
    {
        // SAFETY: DPDK gives one element, which is ours and given up here.
        place.write(unsafe { NonNull::new_unchecked((*objects).cast()) });
        turn.count += 1;
        return 0;
    }
    // SAFETY: by DPDK's promise, the same.
    unsafe { enqueue_many(mempool, objects, n) }
}

/// As [`enqueue`], for all that is not short.
#[inline(never)]
unsafe extern "C" fn enqueue_many(
    mempool: *mut dpdk::rte_mempool,
    objects: *const *mut c_void,
    n: c_uint,
) -> c_int {
    let Some(turn) = turn_of(mempool) else {
        // SAFETY: by the caller's promise.
        return unsafe { enqueue_to_depot(mempool, objects, n) };
    };
    for i in 0..n as usize {
        if turn.count == BURST {
            turn.flush();
        }
        // SAFETY: DPDK gives as many elements as it says, each of them ours and given up here.
        turn.freed[turn.count].write(unsafe { NonNull::new_unchecked((*objects.add(i)).cast()) });
        turn.count += 1;
    }
    0
}

/// As [`enqueue`], outside of a burst call of ours.
#[cold]
unsafe fn enqueue_to_depot(
    mempool: *mut dpdk::rte_mempool,
    objects: *const *mut c_void,
    n: c_uint,
) -> c_int {
    // SAFETY: DPDK calls the operations of a mempool with that mempool.
    if unsafe { twins_of(mempool) }.is_some() {
        for i in 0..n as usize {
            // SAFETY: as in `enqueue`.
            drop(unsafe { Twins::take(NonNull::new_unchecked((*objects.add(i)).cast())) });
        }
    }
    0
}

/// DPDK takes `n` buffers, or none.
unsafe extern "C" fn dequeue(
    mempool: *mut dpdk::rte_mempool,
    objects: *mut *mut c_void,
    n: c_uint,
) -> c_int {
    // SAFETY: as in `enqueue_to_depot`.
    let Some(twins) = (unsafe { twins_of(mempool) }) else {
        return -libc::ENOBUFS;
    };
    let mut turn = turn_of(mempool).filter(|turn| turn.own);
    let n = n as usize;
    let mut filled = 0;
    while filled < n {
        let mut burst = Burst::<BURST>::new();
        let wanted = BURST.min(n - filled);
        let got = match &mut turn {
            Some(turn) => turn.cache.alloc_burst(&mut burst, wanted),
            None => twins.pool().alloc_burst(&mut burst, wanted),
        };
        for mbuf in burst.iter() {
            // SAFETY: DPDK has room for `n` elements, and `filled` is below. The buffer is of our
            // pool, and free until now; of the two copies of its handle the twin's counts.
            unsafe {
                let twin = twins.twin(mbuf.index());
                Twins::hold(twin, ptr::read(mbuf));
                objects.add(filled).write(twin.as_ptr().cast());
            }
            filled += 1;
        }
        mem::forget(burst);
        if got < wanted {
            // SAFETY: the elements that were just filled in, which DPDK does not get.
            unsafe { enqueue(mempool, objects, filled as c_uint) };
            return -libc::ENOBUFS;
        }
    }
    0
}

unsafe extern "C" fn count(mempool: *const dpdk::rte_mempool) -> c_uint {
    // SAFETY: as in `enqueue_to_depot`.
    unsafe { twins_of(mempool) }.map_or(0, |twins| twins.pool().available() as c_uint)
}
