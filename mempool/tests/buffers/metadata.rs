//! The second line of metadata.

use std::thread;

use pollux_mempool::{Burst, MbufFlags, Mempool, Metadata, Network, PoolConfig, Transport};

fn pool(buffers: usize, metadata: bool) -> Mempool {
    Mempool::new(PoolConfig {
        buffers,
        metadata,
        data_room: 64,
        ..PoolConfig::default()
    })
    .unwrap()
}

#[test]
fn metadata_is_there_only_where_it_is_configured() {
    let plain = pool(4, false);
    let mut mbuf = plain.alloc().unwrap();
    assert!(!plain.has_metadata() && mbuf.metadata().is_none() && mbuf.metadata_mut().is_none());
    let cold = pool(4, true);
    assert!(cold.has_metadata() && cold.alloc().unwrap().metadata().is_none());
    // A flag that comes from elsewhere makes no metadata.
    let mut described = cold.alloc().unwrap();
    described.metadata_mut().unwrap().flow_mark = Some(7);
    mbuf.add_flags(described.flags());
    assert!(mbuf.metadata().is_none());
    let mut other = cold.alloc().unwrap();
    other.add_flags(described.flags());
    assert!(other.metadata().is_none());
    described.remove_flags(described.flags());
    assert_eq!(described.metadata().unwrap().flow_mark, Some(7));
    assert!(!described.flags().contains(MbufFlags::WIRE_TIME));
}

#[test]
fn metadata_goes_with_its_frame_and_ends_with_it() {
    let pool = pool(8, true);
    let mut cache = pool.cache(8).unwrap();
    let mut burst = Burst::<8>::new();
    // More than once round, so that each buffer had another frame before.
    for round in 0..5_u32 {
        assert_eq!(cache.alloc_burst(&mut burst, 8), 8);
        for (i, mbuf) in (0..).zip(burst.iter_mut()) {
            assert!(mbuf.metadata().is_none(), "{round}");
            if i % 2 == round % 2 {
                let metadata = mbuf.metadata_mut().unwrap();
                assert_eq!(*metadata, Metadata::default());
                metadata.rss_hash = Some(100 * round + i);
                metadata.network = Some(Network::Ipv4);
            }
        }
        for (i, mbuf) in (0..).zip(burst.iter_mut()) {
            let hash = mbuf.metadata().map(|metadata| metadata.rss_hash);
            assert_eq!(hash, (i % 2 == round % 2).then_some(Some(100 * round + i)));
            // A second call keeps what is set.
            if let (true, Some(metadata)) = (hash.is_some(), mbuf.metadata_mut()) {
                metadata.transport = Some(Transport::Udp);
                assert_eq!(metadata.network, Some(Network::Ipv4));
            }
        }
        cache.free_burst(&mut burst);
    }
    let mut mbuf = cache.alloc().unwrap();
    mbuf.metadata_mut().unwrap().l3_len = 20;
    // In another thread, as its bytes are.
    let frozen = thread::spawn(move || mbuf.freeze()).join().unwrap();
    assert_eq!(frozen.clone().metadata().unwrap().l3_len, 20);
    let Ok(mbuf) = frozen.try_thaw() else {
        panic!("one owner");
    };
    assert_eq!(mbuf.metadata().unwrap().l3_len, 20);
    drop((mbuf, cache));
    assert_eq!(pool.available(), 8);
    for _ in 0..16 {
        assert!(pool.alloc().unwrap().metadata().is_none());
    }
}
