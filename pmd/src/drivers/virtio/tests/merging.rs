//! Frames in several receive buffers, in rings that hold few of them.

use pollux_mempool::Burst;

use super::*;
use crate::Cause;

/// A ring of 16 buffers, of which a long frame takes five.
fn pairs() -> impl Iterator<Item = Pair> {
    let side = || Side::new(64, 2048, 128);
    let merging = all_features().filter(|features| features.mergeable);
    merging.map(move |features| Pair::new(16, features, side(), side()))
}

/// The device sends a frame, as soon as it has enough buffers.
fn send(pair: &mut Pair, bytes: &[u8]) -> usize {
    let mut burst = Burst::<4>::new();
    let frame = pair.device.frame(bytes, &[2000; 4]).unwrap();
    burst.push(frame).unwrap();
    let sent = pair.device_sends(&mut burst.as_mut());
    pair.device.cache.free_burst(&mut burst);
    sent
}

/// All buffers are back in their pools; every frame is accounted for.
fn finish(mut pair: Pair, delivered: u64, lost: u64) {
    let Side { tally, .. } = &mut pair.driver;
    pair.driver_rx.finish(tally);
    let mut balance = tally.view().balance();
    balance.delivered = delivered;
    assert!(balance.is_balanced(), "{balance}");
    assert_eq!(balance.dropped_for(Cause::Aborted), lost);
    assert_eq!(balance.from_wire, delivered + lost);
    let pools = [&pair.driver, &pair.device].map(|side| side.pool.clone());
    drop(pair);
    for pool in pools {
        assert_eq!(pool.available(), pool.buffers());
    }
}

#[test]
fn a_long_frame_finds_room_in_a_small_ring() {
    for mut pair in pairs() {
        let long = payload(7, 9000);
        let mut delivered = 0;
        let mut burst = Burst::<32>::new();
        // For every number of used buffers that are not posted again, the next frame is long.
        for short in 0..12 {
            for number in 0..short {
                assert_eq!(send(&mut pair, &payload(number, 60)), 1);
            }
            pair.driver_receives(&mut burst.as_mut());
            assert_eq!(burst.len(), short as usize);
            assert_eq!(send(&mut pair, &long), 1, "after {short}");
            pair.driver_receives(&mut burst.as_mut());
            assert_eq!(bytes(burst.iter().last().unwrap()), long);
            delivered += burst.len() as u64;
            pair.driver.cache.free_burst(&mut burst);
        }
        finish(pair, delivered, 0);
    }
}

#[test]
fn a_long_frame_that_is_not_fetched_is_one() {
    for mut pair in pairs() {
        for number in 0..3 {
            assert_eq!(send(&mut pair, &payload(number, 9000)), 1);
        }
        assert_eq!(send(&mut pair, &payload(3, 60)), 1);
        finish(pair, 0, 4);
    }
}
