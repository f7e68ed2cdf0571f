//! Sizes that cannot be: each is refused by an error that names the limit, and leaves nothing
//! behind. What a region refuses is tested in `region.rs`, what a ring does in
//! `buffers/ring.rs`.

use std::fs;

use pollux_mempool::region::{Lock, PageSize};
use pollux_mempool::ring::RingError;
use pollux_mempool::{
    Burst, MAX_BUFFERS, MAX_DATA_ROOM, MemoryRegion, Mempool, PoolConfig, PoolError, RegionError,
    mbuf_ring,
};

use crate::{alone, held};

fn small() -> PoolConfig {
    PoolConfig {
        buffers: 64,
        data_room: 64,
        pages: PageSize::Kib4,
        ..PoolConfig::default()
    }
}

/// Why there is no pool like this, many times over, with nothing left behind.
fn refusal(config: PoolConfig) -> PoolError {
    let before = held();
    for _ in 0..20 {
        Mempool::new(config).unwrap_err();
    }
    let error = Mempool::new(config).unwrap_err();
    assert_eq!(held(), before, "{error}");
    error
}

#[test]
fn numbers_of_buffers_have_limits() {
    let _alone = alone();
    for buffers in [0, MAX_BUFFERS + 1, usize::MAX] {
        let error = refusal(PoolConfig { buffers, ..small() });
        assert!(matches!(error, PoolError::Buffers(n) if n == buffers));
        assert!(error.to_string().contains("1 to 67108864"), "{error}");
    }
}

#[test]
fn rooms_have_limits() {
    let _alone = alone();
    for (data_room, headroom) in [
        (0, 128),
        (63, 128),
        (64, 4097),
        (MAX_DATA_ROOM, 1),
        (usize::MAX, 128),
        (64, usize::MAX),
    ] {
        let error = refusal(PoolConfig {
            data_room,
            headroom,
            ..small()
        });
        assert!(matches!(error, PoolError::Room { .. }), "{error}");
        let text = error.to_string();
        assert!(
            text.contains("at least 64 B") && text.contains("1048576"),
            "{text}"
        );
    }
    // Sizes need not be powers of two: what is asked for is what there is.
    let odd = PoolConfig {
        buffers: 77,
        data_room: 1001,
        headroom: 33,
        ..small()
    };
    let pool = Mempool::new(odd).unwrap();
    assert_eq!(
        (pool.buffers(), pool.available(), pool.data_room()),
        (77, 77, 1001)
    );
}

#[test]
fn a_pool_larger_than_its_numbers_is_refused() {
    let _alone = alone();
    let config = PoolConfig {
        buffers: MAX_BUFFERS,
        data_room: 1 << 19,
        headroom: 0,
        ..small()
    };
    let error = refusal(config);
    assert!(matches!(
        error,
        PoolError::TooLarge {
            buffers: MAX_BUFFERS,
            stride: 524_288,
            ..
        }
    ));
    assert!(error.to_string().contains("at most 256 GiB"), "{error}");
}

#[test]
fn a_pool_larger_than_memory_is_refused() {
    let _alone = alone();
    let config = PoolConfig {
        buffers: 1 << 18,
        data_room: MAX_DATA_ROOM,
        headroom: 0,
        ..small()
    };
    if available() > 256 << 30 {
        println!("skipped: this machine has memory for the largest pool");
        return;
    }
    let error = refusal(config);
    match &error {
        PoolError::Region(RegionError::TooLarge { len, available }) => assert!(len > available),
        other => panic!("{other}"),
    }
    assert!(error.to_string().contains("available"), "{error}");
}

/// Bytes of memory that this machine could give.
fn available() -> usize {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap();
    let line = meminfo
        .lines()
        .find(|line| line.starts_with("MemAvailable"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<usize>().unwrap() << 10
}

#[test]
fn a_region_holds_only_so_many_buffers() {
    let _alone = alone();
    let before = held();
    let region = || {
        MemoryRegion::builder(64 << 10)
            .pages(PageSize::Kib4)
            .build()
            .unwrap()
    };
    let stride = Mempool::new(small()).unwrap().stride();
    let fits = (64 << 10) / stride;
    let config = |buffers| PoolConfig { buffers, ..small() };
    let error = Mempool::in_region(region(), &config(fits + 1)).unwrap_err();
    assert!(
        matches!(error, PoolError::RegionTooSmall { buffers, region: 65536, .. } if buffers == fits + 1)
    );
    assert!(error.to_string().contains("65536"), "{error}");
    for buffers in [0, usize::MAX] {
        assert!(matches!(
            Mempool::in_region(region(), &config(buffers)),
            Err(PoolError::Buffers(_))
        ));
    }
    assert_eq!(held(), before, "a refused region is unmapped");
    let pool = Mempool::in_region(region(), &config(fits)).unwrap();
    assert_eq!(pool.available(), fits);
    assert_eq!(pool.region().len(), 65536);
    assert_eq!(
        held().0,
        before.0 + 2,
        "one memory for layout, one for headers"
    );
}

#[test]
fn a_cache_is_no_larger_than_its_pool() {
    let _alone = alone();
    let pool = Mempool::new(small()).unwrap();
    for size in [0, 1, 65, 1 << 17, usize::MAX] {
        let error = pool.cache(size).err().unwrap();
        assert!(matches!(error, PoolError::Cache { cache, pool: 64 } if cache == size));
        assert!(error.to_string().contains("2 to 65536"), "{error}");
    }
    assert_eq!(pool.available(), 64);
    drop(pool.cache(64).unwrap());
    let one = Mempool::new(PoolConfig {
        buffers: 1,
        ..small()
    })
    .unwrap();
    assert!(
        one.cache(2).is_err(),
        "a pool of one is used without a cache"
    );
    assert_eq!(one.alloc().into_iter().count(), 1);
    assert_eq!(one.available(), 1);
}

#[test]
fn a_ring_of_one_buffer_works_and_one_of_none_is_refused() {
    let _alone = alone();
    for capacity in [0, usize::MAX] {
        let error = mbuf_ring(capacity).err().unwrap();
        assert!(matches!(error, RingError::Capacity { .. }));
        assert!(error.to_string().contains("1..=1073741824"), "{error}");
    }
    let pool = Mempool::new(small()).unwrap();
    let (mut producer, mut consumer) = mbuf_ring(1).unwrap();
    let mut burst = Burst::<4>::new();
    pool.alloc_burst(&mut burst, 3);
    for _ in 0..3 {
        assert_eq!(producer.push(&mut burst.as_mut()), 1);
        assert_eq!(producer.push(&mut burst.as_mut()), 0);
        assert_eq!(consumer.pop(&mut burst.as_mut()), 1);
        assert_eq!(consumer.pop(&mut burst.as_mut()), 0);
    }
    drop(burst);
    assert_eq!(pool.available(), 64);
}

#[test]
fn a_node_that_does_not_exist_is_named() {
    let _alone = alone();
    for node in [900, u32::MAX] {
        let error = refusal(PoolConfig {
            numa_node: Some(node),
            ..small()
        });
        assert!(matches!(
            error,
            PoolError::Region(RegionError::NoSuchNode { node: n, .. }) if n == node
        ));
        assert!(error.to_string().contains("nodes with memory"), "{error}");
    }
}

const HUGEPAGES: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";

/// A number that the kernel keeps of its 2 MiB pages; zero where it has none.
fn hugepages(name: &str) -> usize {
    let text = fs::read_to_string(format!("{HUGEPAGES}/{name}")).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// A few pages for this test, where there are none and we may make some: gone afterwards.
struct Reserved(Option<usize>);

impl Reserved {
    fn some() -> Self {
        let all = hugepages("nr_hugepages");
        let lacking = hugepages("free_hugepages") == 0;
        let made = lacking
            && fs::write(format!("{HUGEPAGES}/nr_hugepages"), (all + 4).to_string()).is_ok();
        Self(made.then_some(all))
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Some(all) = self.0 {
            let _ = fs::write(format!("{HUGEPAGES}/nr_hugepages"), all.to_string());
        }
    }
}

/// Some regions, then one page more than there are: it is refused with the numbers, the others stay
/// whole, and all pages come back.
#[test]
fn hugepages_that_run_out_half_way_are_counted() {
    let _alone = alone();
    let _reserved = Reserved::some();
    let free = hugepages("free_hugepages");
    if free == 0 {
        println!("skipped: no free 2 MiB hugepage (scripts/hugepages)");
        return;
    }
    let before = held();
    let page = |n: usize| MemoryRegion::builder(n << 21).pages(PageSize::Mib2).build();
    let some: Vec<_> = (0..free.min(2)).map_while(|_| page(1).ok()).collect();
    // Others may take or return pages meanwhile: far more than there can be.
    let error = page(free + 1000).unwrap_err();
    assert!(matches!(
        &error,
        RegionError::NoHugepages { needed, free: left, .. } if *needed == free + 1000 && left < needed
    ));
    assert!(error.to_string().contains("nr_hugepages"), "{error}");
    for region in &some {
        // SAFETY: inside the region, which nothing else accesses.
        unsafe { region.ptr_at(0, 1).unwrap().write(7) };
        // SAFETY: as above.
        assert_eq!(unsafe { region.ptr_at(0, 1).unwrap().read() }, 7);
    }
    // Asked for any pages, the rest is made of small ones.
    let pool = Mempool::new(PoolConfig {
        pages: PageSize::Auto,
        lock: Lock::Try,
        ..small()
    });
    drop((some, pool.unwrap()));
    assert_eq!(held(), before);
}

/// A pool takes pages for its layout, then for its headers. Where these find none left, those of the
/// rooms go back.
#[test]
fn hugepages_that_run_out_between_rooms_and_headers_go_back() {
    let _alone = alone();
    let _reserved = Reserved::some();
    let before = held();
    // BufferLayout of 64 bytes need as many pages as their headers. Others may return pages meanwhile.
    for _ in 0..10 {
        let free = hugepages("free_hugepages");
        let (pages, buffers) = (free / 2 + 1, ((free / 2 + 1) << 21) / 64);
        if free == 0 || buffers > MAX_BUFFERS {
            break;
        }
        let pool = Mempool::new(PoolConfig {
            buffers,
            headroom: 0,
            pages: PageSize::Mib2,
            ..small()
        });
        let Err(error) = pool else { continue };
        assert!(
            matches!(
                &error,
                PoolError::Region(RegionError::NoHugepages { needed, free: left, .. })
                    if *needed == pages && left < needed
            ),
            "{error}"
        );
        assert_eq!(held(), before);
        return;
    }
    println!("skipped: no free 2 MiB hugepages, or too many of them (scripts/hugepages)");
}
