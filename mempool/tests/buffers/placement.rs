//! Placement of buffers: data rooms in the region, one after the other; headers outside of it,
//! where no writer of the region reaches them.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;

use pollux_mempool::{Burst, IovaMap, Mbuf, Mempool, PoolConfig};

fn pool(buffers: usize, data_room: usize, headroom: usize) -> Mempool {
    Mempool::new(PoolConfig {
        buffers,
        data_room,
        headroom,
        ..PoolConfig::default()
    })
    .unwrap()
}

#[test]
fn each_buffer_has_a_number_and_a_room_of_its_own() {
    for (data_room, headroom, stride) in [(64, 0, 64), (1001, 33, 1088), (3840, 256, 4096)] {
        let pool = pool(77, data_room, headroom);
        assert_eq!(pool.stride(), stride);
        let mut burst = Burst::<128>::new();
        assert_eq!(pool.alloc_burst(&mut burst, 128), 77);
        for mbuf in burst.iter_mut() {
            let start = pool.layout().offset(mbuf.index() as usize);
            assert_eq!(mbuf.data_offset(), start + headroom);
            assert_eq!(mbuf.tailroom(), stride - headroom);
            let room = pool.region().ptr_at(mbuf.data_offset(), data_room).unwrap();
            assert_eq!(mbuf.data_ptr(), room.as_ptr().cast_const());
            for offset in [start, start + stride - 1] {
                let found = pool.layout().index_at(offset);
                assert_eq!(found, Some(mbuf.index() as usize));
            }
            let _ = mbuf.append(mbuf.tailroom()).unwrap();
            assert!(mbuf.advance(5));
            assert_eq!(mbuf.data_offset(), start + headroom + 5);
        }
        let numbers: BTreeSet<u32> = burst.iter().map(Mbuf::index).collect();
        assert!(numbers.into_iter().eq(0..77));
        for behind in [pool.layout().span(), pool.region().len(), usize::MAX] {
            assert_eq!(pool.layout().index_at(behind), None);
        }
    }
}

#[test]
fn a_device_finds_the_data_where_the_map_says() {
    let pool = pool(4, 256, 128);
    let map = IovaMap::simulated(pool.region(), 1 << 50).unwrap();
    let mut mbuf = pool.alloc().unwrap();
    mbuf.append(7).unwrap().copy_from_slice(b"written");
    let iova = map.iova(mbuf.data_offset(), mbuf.len()).unwrap();
    let offset = map.offset_of(iova, mbuf.len()).unwrap();
    assert_eq!(offset, mbuf.data_offset());
    let found = pool.layout().index_at(offset);
    assert_eq!(found, Some(mbuf.index() as usize));
}

#[test]
fn numbers_of_different_pools_are_told_apart() {
    let (mine, other) = (pool(1, 64, 0), pool(1, 64, 0));
    let (a, b) = (mine.alloc().unwrap(), other.alloc().unwrap());
    assert_eq!(a.index(), b.index());
    assert_eq!((a.pool_id(), b.pool_id()), (mine.id(), other.id()));
    assert_ne!(a.pool_id(), b.pool_id());
}

/// A peer with the descriptor of the region writes to all of it: the bytes of frames change, and
/// nothing else.
#[test]
fn who_writes_to_the_region_spoils_bytes_alone() {
    let pool = pool(64, 64, 128);
    let mut cache = pool.cache(16).unwrap();
    let mut chained = cache.alloc_from(&[1; 300]).unwrap();
    let mut single = cache.alloc_from(b"single").unwrap();
    let frozen = cache.alloc_from(&[2; 100]).unwrap().freeze();
    let shared = frozen.clone();
    let (index, offset) = (single.index(), single.data_offset());

    // SAFETY: no reference to the bytes of a buffer is held while they are written.
    let fd = unsafe { pool.region().fd() };
    let peer = File::from(fd.try_clone_to_owned().unwrap());
    let all = vec![0xff; pool.region().len()];
    peer.write_all_at(&all, 0).unwrap();

    assert_eq!(single.data(), [0xff; 6]);
    assert_eq!((single.index(), single.data_offset()), (index, offset));
    assert_eq!((single.headroom(), single.pool_id()), (128, pool.id()));
    assert_eq!((chained.total_len(), chained.segment_count()), (300, 5));
    assert!(chained.segments().flatten().all(|&byte| byte == 0xff));
    assert_eq!(chained.append(4).unwrap().len(), 4);
    single.chain(chained).unwrap();
    single.truncate(100);
    assert_eq!((single.segment_count(), shared.total_len()), (3, 100));
    assert!(frozen.try_thaw().is_err());
    cache.free(single);
    drop((shared, cache));
    assert_eq!(pool.available(), 64);

    let mut burst = Burst::<64>::new();
    assert_eq!(pool.alloc_burst(&mut burst, 64), 64);
    for mbuf in burst.iter() {
        assert_eq!((mbuf.len(), mbuf.headroom()), (0, 128));
    }
}
