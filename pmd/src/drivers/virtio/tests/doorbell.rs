//! Doorbells: a side is notified of new buffers if it requests that, and only then.

use std::os::fd::{AsFd, OwnedFd};

use pollux_mempool::Burst;
use rustix::event::{EventfdFlags, eventfd};

use super::*;
use crate::event::RegionOptions;

fn event() -> (OwnedFd, Doorbell) {
    let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
    let doorbell = Doorbell::Event(fd.try_clone().unwrap());
    (fd, doorbell)
}

/// Number of rings since the last read.
fn rings(fd: impl AsFd) -> u64 {
    let mut count = [0; 8];
    rustix::io::read(fd, &mut count).map_or(0, |_| u64::from_ne_bytes(count))
}

/// Writes the notification flags of a side, in its own area: of a split ring its first word, of a
/// packed one its second.
fn set_flags(at: std::ptr::NonNull<u8>, packed: bool, flags: u16) {
    let offset = if packed { 2 } else { 0 };
    // SAFETY: either area is at least 4 bytes long, aligned to 4, and accessed by atomics alone.
    let word = unsafe { std::sync::atomic::AtomicU16::from_ptr(at.add(offset).cast().as_ptr()) };
    word.store(flags, std::sync::atomic::Ordering::Relaxed);
}

#[test]
fn it_is_rung_for_a_peer_that_listens() {
    for features in all_features() {
        let size = 64;
        let (mut driver, mut device) = (Side::new(256, 2048, 128), Side::new(64, 2048, 128));
        let queue =
            QueueMemory::several(1, size, features.packed, &RegionOptions::default()).unwrap();
        let (memory, addresses) = shared(&[driver.pool.region(), queue[0].region()]);
        let ring = memory
            .ring(places(&queue[0]), size, features.packed)
            .unwrap();
        let (kick, kicks) = event();
        let (call, calls) = event();
        let base = features.first_base();
        let mut tx = DeviceTx::new(&ring, features, &memory, base, calls).unwrap();
        let mut rx = DriverRx::new(&queue[0], features, addresses, &driver.pool, kicks);
        // The device had disabled notifications before the first buffers were posted.
        assert_eq!(rings(&kick), 0, "{features:?}");
        let mut exchange = || {
            let mut burst = Burst::<32>::new();
            for number in 0..32 {
                burst
                    .push(device.frame(&payload(number, 60), &[]).unwrap())
                    .unwrap();
            }
            tx.tx(&mut device.cache, &mut burst.as_mut(), &mut device.sent);
            let Side {
                cache,
                origin,
                tally,
                ..
            } = &mut driver;
            assert_eq!(rx.rx(cache, &mut burst.as_mut(), origin, tally), 32);
            cache.free_burst(&mut burst);
            (rings(&kick), rings(&call))
        };
        let at = queue[0].ring().at();
        assert_eq!(exchange(), (0, 0), "both poll, {features:?}");
        set_flags(at.driver, features.packed, 0);
        assert_eq!(exchange(), (0, 1), "the driver listens, {features:?}");
        set_flags(at.device, features.packed, 0);
        assert_eq!(exchange(), (1, 1), "both listen, {features:?}");
        set_flags(at.driver, features.packed, 1);
        set_flags(at.device, features.packed, 1);
        assert_eq!(exchange(), (0, 0), "both poll again, {features:?}");
    }
}
