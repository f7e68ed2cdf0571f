//! Pools of anything that a small `Copy` handle names: descriptors, request slots, indices.
//!
//! Such a pool is an [`Mpmc`] ring that was filled with the handles; an [`ObjectCache`] is one
//! thread's cache in front of it. Packet buffers have a pool of their own, with owners:
//! [`Mempool`](crate::Mempool).

use core::mem::MaybeUninit;
use std::sync::Arc;

use crate::local_cache::{LocalCache, MAX_LOCAL_CACHE};
use crate::pool::PoolError;
use crate::ring::Mpmc;

/// One thread's cache of free handles. Flushes itself into the ring when dropped.
///
/// ```
/// use std::mem::MaybeUninit;
/// use std::sync::Arc;
/// use pollux_mempool::{ObjectCache, ring::Mpmc};
///
/// let free = Arc::new(Mpmc::new(64)?);
/// assert!((0..64).all(|slot: u32| free.push(slot)));
/// let mut cache = ObjectCache::new(Arc::clone(&free), 16)?;
/// let mut slots = [MaybeUninit::uninit(); 4];
/// assert!(cache.get_bulk(&mut slots));
/// let slots = slots.map(|slot| unsafe { slot.assume_init() });
/// assert!(cache.put_bulk(&slots));
/// drop(cache);
/// assert_eq!(free.len(), 64);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ObjectCache<T: Copy + Send> {
    local: LocalCache<T>,
    shared: Arc<Mpmc<T>>,
}

impl<T: Copy + Send> ObjectCache<T> {
    /// A cache of up to `size` handles in front of `shared`.
    ///
    /// # Errors
    /// A size below 2, above 65 536, or above the ring's.
    pub fn new(shared: Arc<Mpmc<T>>, size: usize) -> Result<Self, PoolError> {
        let pool = shared.capacity();
        if !(2..=MAX_LOCAL_CACHE).contains(&size) || size > pool {
            return Err(PoolError::Cache { cache: size, pool });
        }
        Ok(Self {
            local: LocalCache::new(size),
            shared,
        })
    }

    /// Fills all of `out` and returns `true`, or takes nothing if there are fewer handles.
    #[must_use = "false says that nothing was taken"]
    #[inline]
    pub fn get_bulk(&mut self, out: &mut [MaybeUninit<T>]) -> bool {
        let shared = &self.shared;
        self.local.take(out, |slots| shared.pop_burst(slots)) || self.get_past(out)
    }

    /// A request above half the cache, or above what there is.
    #[cold]
    fn get_past(&mut self, out: &mut [MaybeUninit<T>]) -> bool {
        let shared = &self.shared;
        // What is kept here counts: without it, the ring might have too few.
        self.local.flush(|elements| shared.push_bulk(elements)) && shared.pop_bulk(out)
    }

    /// Puts handles back; `false`, and nothing put back, if the ring would hold more than its
    /// capacity: then some were put back twice.
    #[must_use = "false says that nothing was put back"]
    #[inline]
    pub fn put_bulk(&mut self, handles: &[T]) -> bool {
        let shared = &self.shared;
        self.local
            .put(handles, |elements| shared.push_bulk(elements))
    }

    /// Handles in the cache now.
    #[must_use]
    pub fn len(&self) -> usize {
        self.local.len()
    }

    /// Whether the cache is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.local.len() == 0
    }
}

impl<T: Copy + Send> Drop for ObjectCache<T> {
    fn drop(&mut self) {
        let shared = &self.shared;
        // Refused only where handles were put back twice: then there is one for each anyway.
        self.local.flush(|elements| shared.push_bulk(elements));
    }
}
