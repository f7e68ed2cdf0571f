//! Rate and buffer of an output: what many inputs send to one is lost by arithmetic.

use pollux_switch::SwitchConfig;
use proptest::prelude::*;

use crate::rig::{Rig, frame, mac};

/// 8 Gbit/s: a byte takes a nanosecond.
const RATE: u64 = 8_000_000_000;

/// A rig whose host 0 is known.
fn rig(ports: usize, rate: Option<u64>, buffer: usize) -> Rig {
    let config = SwitchConfig {
        rate,
        buffer,
        ..SwitchConfig::default()
    };
    let mut rig = Rig::new(ports, &config);
    rig.send(0, &frame([0xff; 6], mac(0), 60));
    rig.poll_after(1);
    // The broadcast has left all outputs.
    rig.poll_after(1_000_000);
    for host in 0..ports {
        rig.received(host);
    }
    rig
}

#[test]
fn an_incast_loses_what_exceeds_the_buffer() {
    for (senders, each, len, buffer) in [
        (24, 1, 192, 65_536),
        (24, 4, 1024, 65_536),
        (8, 30, 1514, 65_536),
        (80, 1, 1024, 65_536),
        (3, 7, 60, 1199),
    ] {
        let mut rig = rig(senders + 1, Some(RATE), buffer);
        for _ in 0..each {
            for sender in 1..=senders {
                rig.send(sender, &frame(mac(0), mac(sender as u8), len));
            }
        }
        // All at one moment.
        rig.poll_after(0);
        let (all, fit) = (senders * each, buffer / len);
        let kept = all.min(fit);
        // They leave one after the other.
        for gone in 0..kept {
            rig.poll_after(len as u64 - 1);
            assert_eq!(rig.received(0).len(), 0, "frame {gone} of {len} bytes");
            rig.poll_after(1);
            assert_eq!(rig.received(0).len(), 1, "frame {gone} of {len} bytes");
        }
        assert!(rig.switch.is_empty());
        let ended = rig.end();
        let output = &ended.report.outputs[0];
        let lost = (all - kept) as u64;
        assert_eq!((output.sent, output.output_full), (kept as u64, lost));
        assert_eq!(output.peak_bytes, (kept * len) as u64);
        assert_eq!(ended.dropped("output-full"), lost);
    }
}

#[test]
fn a_buffer_takes_a_frame_when_another_has_left() {
    let mut rig = rig(3, Some(RATE), 200);
    let long = frame(mac(0), mac(1), 100);
    for _ in 0..3 {
        rig.send(1, &long);
    }
    rig.poll_after(0);
    // The first one is on the wire until its last bit has left.
    rig.send(2, &long);
    rig.poll_after(99);
    rig.send(2, &long);
    rig.poll_after(1);
    assert_eq!(rig.received(0).len(), 1);
    rig.poll_after(1000);
    assert_eq!(rig.received(0).len(), 2);
    let ended = rig.end();
    assert_eq!(ended.dropped("output-full"), 2);
    assert_eq!(ended.report.outputs[0].sent, 3);
}

#[test]
fn without_a_rate_a_port_that_takes_no_more_fills_the_buffer() {
    let config = SwitchConfig {
        buffer: 6000,
        ..SwitchConfig::default()
    };
    // The link takes 64 frames of 100 bytes, the buffer 60.
    let mut rig = Rig::with_ring(2, &config, 64);
    rig.reached(0, &frame([0xff; 6], mac(0), 60));
    for _ in 0..10 {
        for _ in 0..20 {
            rig.send(1, &frame(mac(0), mac(1), 100));
        }
        rig.poll_after(1000);
    }
    assert_eq!(rig.received(0).len(), 64);
    rig.poll_after(1000);
    assert_eq!(rig.received(0).len(), 60);
    let ended = rig.end();
    assert_eq!(ended.dropped("output-full"), 200 - 124);
}

#[test]
fn a_flooded_frame_is_lost_only_at_the_outputs_that_are_full() {
    let mut rig = rig(4, Some(RATE), 300);
    for _ in 0..3 {
        rig.send(1, &frame(mac(0), mac(1), 100));
    }
    rig.poll_after(0);
    // Output 0 is full, the others are empty.
    for _ in 0..4 {
        rig.send(2, &frame([0xff; 6], mac(2), 100));
    }
    rig.poll_after(0);
    rig.poll_after(1000);
    let counts = [0, 1, 2, 3].map(|host| rig.received(host).len());
    assert_eq!(counts, [3, 3, 0, 3]);
    let ended = rig.end();
    let full: Vec<_> = ended.report.outputs.iter().map(|o| o.output_full).collect();
    assert_eq!(full, [4, 1, 0, 1]);
    // In the ledger, only the frame that found room nowhere is lost.
    assert_eq!(ended.dropped("output-full"), 1);
}

#[test]
fn frames_that_wait_at_the_end_are_counted() {
    let mut rig = rig(3, Some(RATE), 10_000);
    for _ in 0..5 {
        rig.send(1, &frame([0xff; 6], mac(1), 1000));
    }
    rig.poll_after(0);
    rig.poll_after(2000);
    let ended = rig.end();
    // Of five frames with a copy each, two have left.
    assert_eq!(ended.dropped("aborted"), 3);
    let aborted = |port: usize| ended.report.outputs[port].aborted;
    assert_eq!([aborted(0), aborted(1), aborted(2)], [3, 0, 3]);
}

proptest! {
    /// The rate is kept by the clock of the switch, however often it is polled: a busy output sends
    /// a frame at each end of a frame's time, to the nanosecond.
    #[test]
    fn the_rate_is_kept_at_any_pace_of_polls(
        lens in prop::collection::vec(60_usize..1514, 1..30),
        waits in prop::collection::vec(0_u64..4000, 1..200),
    ) {
        let config = SwitchConfig { rate: Some(RATE), ..SwitchConfig::default() };
        let mut rig = Rig::with_ring(2, &config, 64);
        rig.reached(0, &frame([0xff; 6], mac(0), 60));
        for &len in &lens {
            rig.send(1, &frame(mac(0), mac(1), len));
        }
        rig.poll_after(0);
        let mut now = 0;
        let mut received = 0;
        for wait in waits {
            rig.poll_after(wait);
            now += wait;
            received += rig.received(0).len();
            let ends = lens.iter().scan(0, |end, &len| { *end += len as u64; Some(*end) });
            prop_assert_eq!(received, ends.take_while(|&end| end <= now).count());
        }
        rig.end();
    }
}
