//! Memory regions: what they promise, what they refuse, and that nothing is left behind.

use std::fs;
use std::os::fd::AsRawFd;

use pollux_mempool::region::{Lock, PageSize};
use pollux_mempool::{MemoryRegion, RegionError};

use crate::{alone, held};

/// Bytes of addresses that this process holds. The test harness moves this by some threads'
/// stacks and heaps, so that only large differences mean something.
fn addresses() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmSize:"))
        .unwrap();
    line.trim()
        .strip_suffix(" kB")
        .unwrap()
        .parse::<usize>()
        .unwrap()
        << 10
}

/// Runs `step`, which may not keep any mapping, descriptor or GiB of addresses.
fn leaves_nothing(step: impl FnOnce()) {
    let before = (held(), addresses());
    step();
    assert_eq!(held(), before.0);
    let kept = addresses().saturating_sub(before.1);
    assert!(kept < 1 << 30, "{kept} bytes of addresses are kept");
}

fn free_hugepages() -> usize {
    let path = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .parse()
        .unwrap_or(0)
}

#[test]
fn a_region_is_zeroed_writable_aligned_and_gone_afterwards() {
    let _alone = alone();
    let before = held();
    let region = MemoryRegion::builder(10_000)
        .pages(PageSize::Kib4)
        .build()
        .unwrap();
    assert_eq!((region.len(), region.page_size()), (12_288, 4096));
    assert_eq!(region.as_ptr().addr().get() % 4096, 0);
    assert_eq!(held(), (before.0 + 1, before.1 + 1));
    let bytes = region.as_ptr().as_ptr();
    for offset in 0..region.len() {
        // SAFETY: inside the region, which nothing else accesses.
        unsafe {
            assert_eq!(bytes.add(offset).read(), 0);
            bytes.add(offset).write(offset as u8);
        }
    }
    drop(region);
    leaves_nothing(|| {
        for _ in 0..40 {
            MemoryRegion::builder(32 << 20).build().unwrap();
        }
    });
    assert_eq!(held(), before);
}

#[test]
fn guards_are_inaccessible() {
    let _alone = alone();
    let region = MemoryRegion::builder(4096)
        .pages(PageSize::Kib4)
        .build()
        .unwrap();
    let start = region.as_ptr().addr().get();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let access = |address: usize| {
        maps.lines().find_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (from, to) = range.split_once('-')?;
            let from = usize::from_str_radix(from, 16).ok()?;
            let to = usize::from_str_radix(to, 16).ok()?;
            (from <= address && address < to).then(|| rest[..4].to_owned())
        })
    };
    assert_eq!(access(start).as_deref(), Some("rw-s"));
    assert_eq!(access(start - 1).as_deref(), Some("---p"));
    assert_eq!(access(start + region.len()).as_deref(), Some("---p"));
}

#[test]
fn the_file_shows_the_same_bytes_and_keeps_its_size() {
    let _alone = alone();
    let region = MemoryRegion::builder(4096).build().unwrap();
    // SAFETY: inside the region, which nothing else accesses.
    unsafe { region.ptr_at(100, 1).unwrap().write(42) };
    // SAFETY: nothing is written through it.
    let fd = unsafe { region.fd() };
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    assert_eq!(fs::read(&path).unwrap()[100], 42);
    let file = fs::File::from(fd.try_clone_to_owned().unwrap());
    assert!(file.set_len(0).is_err() && file.set_len(8192).is_err());
}

#[test]
fn pointers_are_checked() {
    let _alone = alone();
    let region = MemoryRegion::builder(4096).build().unwrap();
    assert_eq!(region.ptr_at(0, 4096).unwrap(), region.as_ptr());
    assert!(region.ptr_at(4096, 0).is_ok());
    for (offset, len) in [
        (0, 4097),
        (4096, 1),
        (4097, 0),
        (usize::MAX, 1),
        (1, usize::MAX),
    ] {
        let error = region.ptr_at(offset, len).unwrap_err();
        assert!(
            matches!(error, RegionError::OutOfRange { region: 4096, .. }),
            "{error}"
        );
    }
}

#[test]
fn impossible_sizes_are_refused_and_leave_nothing() {
    let _alone = alone();
    assert!(matches!(
        MemoryRegion::builder(0).build(),
        Err(RegionError::ZeroSize)
    ));
    leaves_nothing(|| {
        for len in [1 << 46, usize::MAX] {
            let error = MemoryRegion::builder(len)
                .pages(PageSize::Kib4)
                .build()
                .unwrap_err();
            assert!(matches!(error, RegionError::TooLarge { .. }), "{error}");
            assert!(error.to_string().contains("available"), "{error}");
        }
    });
}

#[test]
fn missing_hugepages_are_named_with_their_remedy() {
    let _alone = alone();
    let wanted = free_hugepages() + 1000;
    leaves_nothing(|| {
        let error = MemoryRegion::builder(wanted << 21)
            .pages(PageSize::Mib2)
            .build()
            .unwrap_err();
        match &error {
            RegionError::NoHugepages {
                page,
                needed,
                remedy,
                ..
            } => {
                assert_eq!((*page, *needed), (2 << 20, wanted));
                assert!(remedy.starts_with("echo ") && remedy.ends_with("/nr_hugepages"));
            }
            RegionError::Unsupported { .. } => println!("skipped: no 2 MiB pages here"),
            other => panic!("{other}"),
        }
    });
}

#[test]
fn hugepages_are_used_where_there_are_some() {
    let _alone = alone();
    if free_hugepages() == 0 {
        println!("skipped: no free 2 MiB hugepage");
        return;
    }
    let region = MemoryRegion::builder(2 << 20)
        .lock(Lock::Require)
        .build()
        .unwrap();
    assert_eq!((region.page_size(), region.len()), (2 << 20, 2 << 20));
    assert_eq!(region.as_ptr().addr().get() % (2 << 20), 0);
    assert!(region.is_locked());
    // SAFETY: inside the region, which nothing else accesses.
    let last = unsafe { region.ptr_at((2 << 20) - 1, 1).unwrap().read() };
    assert_eq!(last, 0);
}

#[test]
fn small_regions_have_small_pages() {
    let _alone = alone();
    assert_eq!(
        MemoryRegion::builder(65_536).build().unwrap().page_size(),
        4096
    );
}

#[test]
fn nodes_are_obeyed_or_refused() {
    let _alone = alone();
    leaves_nothing(|| {
        for node in [900, 5000, u32::MAX] {
            // Refused before a page is there: the size costs addresses only.
            let error = MemoryRegion::builder(1 << 30)
                .pages(PageSize::Kib4)
                .numa_node(node)
                .build()
                .unwrap_err();
            assert!(matches!(error, RegionError::NoSuchNode { .. }), "{error}");
            assert!(error.to_string().contains("nodes with memory"), "{error}");
        }
    });
    if fs::metadata("/sys/devices/system/node/node0").is_err() {
        println!("skipped: this kernel has no NUMA nodes");
        return;
    }
    let region = MemoryRegion::builder(64 << 10)
        .numa_node(0)
        .build()
        .unwrap();
    assert_eq!(region.numa_node(), Some(0));
}

/// In a child, as a lower limit cannot be raised again without privilege.
#[test]
fn an_unlockable_region_is_refused_or_left_unlocked() {
    const CHILD: &str = "POLLUX_TEST_MEMLOCK";
    let _alone = alone();
    if std::env::var_os(CHILD).is_none() {
        let test = std::env::current_exe().unwrap();
        let run = "ulimit -l 64 && exec setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock \
                   \"$0\" --exact region::an_unlockable_region_is_refused_or_left_unlocked --nocapture";
        let output = std::process::Command::new("bash")
            .args(["-c", run])
            .arg(test)
            .env(CHILD, "1")
            .output()
            .unwrap();
        let text =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        if text.contains("setpriv") {
            println!("skipped: {text}");
            return;
        }
        assert!(
            output.status.success() && text.contains("1 passed"),
            "{text}"
        );
        print!("{text}");
        return;
    }
    let before = held();
    let builder = MemoryRegion::builder(1 << 20).pages(PageSize::Kib4);
    match builder.clone().lock(Lock::Require).build() {
        Err(error) => {
            assert!(
                matches!(
                    error,
                    RegionError::Lock {
                        limit: Some(65_536),
                        ..
                    }
                ),
                "{error}"
            );
            assert!(error.to_string().contains("ulimit -l 1024"), "{error}");
            assert_eq!(held(), before);
            assert!(!builder.build().unwrap().is_locked());
        }
        Ok(_) => println!("skipped: this process may lock what it likes"),
    }
}
