//! Protocol violations of a device: each is counted, and nothing worse happens.

use pollux_mempool::Burst;

use super::*;
use crate::Cause;
use crate::drivers::virtio::hostile::HostileDevice;

const SPLIT: u8 = 0;
const PACKED: u8 = 1;
const IN_ORDER: u8 = 2;
const MERGEABLE: u8 = 4;

/// Receive buffers 0 to 7 are posted; frames of 72 bytes with their header can be returned.
struct Test {
    device: HostileDevice,
    side: Side,
}

impl Test {
    fn new(features: u8) -> Self {
        let side = Side::new(64, 2048, 128);
        Self {
            device: HostileDevice::new(features, 7, &side.pool),
            side,
        }
    }

    /// Polls, and returns the number of frames received and lost.
    fn poll(&mut self) -> (usize, u64) {
        let Side {
            cache,
            origin,
            tally,
            ..
        } = &mut self.side;
        let mut burst = Burst::<32>::new();
        let n = self.device.rx(cache, &mut burst.as_mut(), origin, tally);
        cache.free_burst(&mut burst);
        let balance = tally.view().balance();
        let lost = balance.dropped_for(Cause::DeviceError);
        assert_eq!(balance.dropped_total(), lost);
        (n, lost)
    }

    fn send(&mut self, frames: usize) -> usize {
        let mut burst = Burst::<32>::new();
        for number in 0..frames {
            let mbuf = self.side.frame(&payload(number as u32, 60), &[]).unwrap();
            burst.push(mbuf).unwrap();
        }
        let Side { cache, sent, .. } = &mut self.side;
        let taken = self.device.tx(cache, &mut burst.as_mut(), sent);
        cache.free_burst(&mut burst);
        taken
    }

    /// Frames sent, and refused.
    fn sent(&self) -> (u64, u64) {
        let view = self.side.sent.view();
        (view.packets(), view.errors())
    }

    fn finish(self) {
        let pool = self.side.pool.clone();
        drop(self);
        assert_eq!(pool.available(), pool.buffers());
    }
}

#[test]
fn an_honest_device_is_believed() {
    for features in 0..8 {
        let mut test = Test::new(features);
        for round in 0..20_u16 {
            let id = round % 8;
            test.device.write_header(id, 1);
            test.device.give(0, id, 72, 1);
            assert_eq!(test.poll(), (1, 0), "features {features}, round {round}");
        }
        assert_eq!(test.device.are_broken(), (false, false));
        test.finish();
    }
}

#[test]
fn a_buffer_that_was_not_posted_breaks_the_queue() {
    for features in [SPLIT, PACKED] {
        for id in [8, 9, u16::MAX] {
            let mut test = Test::new(features);
            test.device.give(0, id, 72, 1);
            assert_eq!(test.poll(), (0, 1));
            assert_eq!(test.device.are_broken(), (true, false));
            // Returned a second time.
            test.device.give(0, 0, 72, 1);
            assert_eq!(test.poll(), (0, 1));
            test.finish();
        }
    }
}

#[test]
fn a_buffer_that_came_back_already_breaks_the_queue() {
    for features in [SPLIT, PACKED] {
        let mut test = Test::new(features);
        for id in 0..4 {
            test.device.give(0, id, 72, 1);
        }
        test.device.give(0, 2, 72, 1);
        assert_eq!(test.poll(), (4, 1));
        assert_eq!(test.device.are_broken(), (true, false));
        test.finish();
    }
}

#[test]
fn in_order_another_buffer_than_the_next_breaks_the_queue() {
    for features in [SPLIT | IN_ORDER, PACKED | IN_ORDER] {
        let mut test = Test::new(features);
        test.device.give(0, 0, 72, 1);
        test.device.give(0, 2, 72, 1);
        assert_eq!(test.poll(), (1, 1));
        assert_eq!(test.device.are_broken(), (true, false));
        test.finish();
    }
}

#[test]
fn out_of_order_is_no_violation_where_it_is_allowed() {
    for features in [SPLIT, PACKED] {
        let mut test = Test::new(features);
        for id in [5, 0, 7, 2, 1, 3, 6, 4] {
            test.device.give(0, id, 72, 1);
        }
        assert_eq!(test.poll(), (8, 0));
        for id in [4, 6, 3, 1, 2, 7, 0, 5] {
            test.device.give(0, id, 72, 1);
        }
        assert_eq!(test.poll(), (8, 0));
        test.finish();
    }
}

#[test]
fn a_length_that_was_not_posted_costs_its_buffer() {
    for features in 0..4 {
        let mut test = Test::new(features);
        // Longer than the buffer, without a frame, shorter than a header; then a valid one.
        let mut lost = 0;
        for (id, len) in [(0, 2048 + 12 + 64), (1, u32::MAX), (2, 12), (3, 11), (4, 0)] {
            test.device.give(0, id, len, 1);
            lost += 1;
            assert_eq!(test.poll(), (0, lost));
        }
        test.device.give(0, 5, 13, 1);
        assert_eq!(test.poll(), (1, lost));
        assert_eq!(test.device.are_broken(), (false, false));
        test.finish();
    }
}

#[test]
fn a_used_index_that_runs_ahead_breaks_the_queue() {
    for features in [SPLIT, SPLIT | IN_ORDER] {
        let mut test = Test::new(features);
        test.device.set_used_index(0, 9);
        assert_eq!(test.poll(), (0, 1));
        test.device.set_used_index(1, 1);
        assert_eq!(test.send(3), 3);
        assert_eq!(test.send(0), 0);
        assert_eq!(test.sent(), (1, 0));
        test.device.set_used_index(1, 4);
        assert_eq!(test.send(0), 0);
        // The outcome of the frames in flight is unknown.
        assert_eq!(test.sent(), (1, 2));
        assert_eq!(test.device.are_broken(), (true, true));
        // Frames stay with the caller.
        assert_eq!(test.send(3), 0);
        assert_eq!(test.sent(), (1, 2));
        test.finish();
    }
}

#[test]
fn the_last_of_several_stands_for_all_in_order() {
    for features in [SPLIT | IN_ORDER, PACKED | IN_ORDER] {
        let mut test = Test::new(features);
        assert_eq!(test.send(6), 6);
        if features & PACKED == 0 {
            test.device.set_used_index(1, 4);
        } else {
            test.device.give(1, 3, 0, 4);
        }
        test.send(0);
        assert_eq!(test.sent(), (4, 0));
        test.finish();
    }
}

#[test]
fn a_sent_buffer_that_was_not_posted_breaks_the_queue() {
    for features in [SPLIT, PACKED, PACKED | IN_ORDER] {
        for id in [6, 300] {
            let mut test = Test::new(features);
            assert_eq!(test.send(4), 4);
            test.device.give(1, id, 0, 1);
            // The queue checks before it sends, and then sends nothing.
            assert_eq!(test.send(5), 0);
            let (sent, errors) = test.sent();
            assert_eq!(sent + errors, 4, "features {features}, id {id}");
            assert_eq!(test.device.are_broken(), (false, true));
            test.finish();
        }
    }
}

#[test]
fn a_frame_of_more_buffers_than_came_is_lost() {
    for features in [SPLIT, PACKED, SPLIT | IN_ORDER, PACKED | IN_ORDER] {
        // One more than posted, none, and more than a frame can have.
        for (buffers, more) in [(3, 1), (0, 0), (u16::MAX, 0)] {
            let mut test = Test::new(features | MERGEABLE);
            test.device.write_header(0, buffers);
            for id in 0..=more {
                test.device.give(0, id, 1000, 1);
            }
            assert_eq!(test.poll(), (0, 1), "{buffers} buffers");
            // The next one is a frame again.
            let id = more + 1;
            test.device.write_header(id, 1);
            test.device.give(0, id, 1000, 1);
            assert_eq!(test.poll(), (1, 1));
            test.finish();
        }
    }
}

#[test]
fn a_later_buffer_of_a_frame_is_checked_too() {
    for features in [SPLIT | MERGEABLE, PACKED | MERGEABLE] {
        let mut test = Test::new(features);
        test.device.write_header(0, 2);
        test.device.give(0, 0, 2000, 1);
        test.device.give(0, 1, 1 << 20, 1);
        assert_eq!(test.poll(), (0, 1));
        test.device.write_header(2, 2);
        test.device.give(0, 2, 2000, 1);
        test.device.give(0, 60, 10, 1);
        assert_eq!(test.poll(), (0, 2));
        assert_eq!(test.device.are_broken(), (true, false));
        test.finish();
    }
}

#[test]
fn what_the_device_writes_into_descriptors_changes_nothing() {
    let mut test = Test::new(SPLIT);
    test.device.scribble(0, 0, 0, &[0xff; 128]);
    test.device.scribble(0, 1, 0, &[0xff; 20]);
    for id in 0..8 {
        test.device.give(0, id, 72, 1);
    }
    assert_eq!(test.poll(), (8, 0));
    test.finish();
}
