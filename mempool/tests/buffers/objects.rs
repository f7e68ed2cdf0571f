//! Pools of handles: none is lost, none comes twice, for all sizes.

use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::sync::Arc;

use pollux_mempool::ring::Mpmc;
use pollux_mempool::{ObjectCache, PoolError};
use proptest::prelude::*;

fn pool(handles: u32) -> Arc<Mpmc<u32>> {
    let pool = Arc::new(Mpmc::new(handles as usize).unwrap());
    assert!((0..handles).all(|handle| pool.push(handle)));
    pool
}

fn get(cache: &mut ObjectCache<u32>, n: usize) -> Option<Vec<u32>> {
    let mut out = vec![MaybeUninit::uninit(); n];
    let full = cache.get_bulk(&mut out);
    // SAFETY: `get_bulk` filled all of them.
    let filled = |handle: &MaybeUninit<u32>| unsafe { handle.assume_init() };
    full.then(|| out.iter().map(filled).collect())
}

#[test]
fn sizes_out_of_limits_are_refused() {
    for (size, handles) in [(0, 10), (1, 10), (11, 10), (65_537, 100_000)] {
        let refused = ObjectCache::new(pool(handles), size).err();
        assert!(matches!(refused, Some(PoolError::Cache { cache, .. }) if cache == size));
    }
}

#[test]
fn a_request_is_served_whole_or_not_at_all() {
    let shared = pool(10);
    let mut cache = ObjectCache::new(Arc::clone(&shared), 8).unwrap();
    let mut held = get(&mut cache, 3).unwrap();
    assert_eq!(get(&mut cache, 8), None);
    assert_eq!(cache.len() + shared.len(), 7);
    // more than half a cache, and partly in it
    held.extend(get(&mut cache, 7).unwrap());
    assert_eq!(held.iter().collect::<BTreeSet<_>>().len(), 10);
    assert_eq!(get(&mut cache, 1), None);
    assert_eq!(get(&mut cache, 0), Some(vec![]));
}

#[test]
fn more_than_the_pool_held_are_refused() {
    let mut cache = ObjectCache::new(pool(4), 2).unwrap();
    assert!(
        cache.put_bulk(&[7, 7]),
        "one cache more than the pool is not seen yet"
    );
    assert!(!cache.put_bulk(&[7]));
    assert_eq!(cache.len(), 2);
}

proptest! {
    #[test]
    fn every_handle_is_in_one_place(
        size in 2usize..40,
        steps in proptest::collection::vec((any::<bool>(), any::<bool>(), 0usize..50), 0..200),
    ) {
        const HANDLES: u32 = 64;
        let shared = pool(HANDLES);
        let mut caches = [(); 2].map(|()| ObjectCache::new(Arc::clone(&shared), size).unwrap());
        let mut held: Vec<u32> = Vec::new();
        for (first, take, n) in steps {
            let cache = &mut caches[usize::from(first)];
            if take {
                let there = cache.len() + shared.len();
                let got = get(cache, n);
                prop_assert_eq!(got.is_some(), there >= n);
                held.extend(got.unwrap_or_default());
            } else {
                let back = held.split_off(held.len() - n.min(held.len()));
                prop_assert!(cache.put_bulk(&back));
            }
            let distinct: BTreeSet<_> = held.iter().collect();
            prop_assert_eq!(distinct.len(), held.len());
            let all = held.len() + shared.len() + caches.iter().map(ObjectCache::len).sum::<usize>();
            prop_assert_eq!(all, HANDLES as usize);
        }
        prop_assert!(caches[0].put_bulk(&held));
        drop(caches);
        prop_assert_eq!(shared.len(), HANDLES as usize);
    }
}
