//! Packets in any order, lost and repeated, against images that are placed by brute force.

use pollux_pipelines::Moment;
use pollux_pmd::Cause;
use pollux_pmd::stream::StreamId;
use proptest::prelude::*;

use super::super::*;
use super::support::*;
use crate::formats::Layout;

/// Order, losses and copies of the packets of some frames.
#[derive(Clone, Debug)]
struct Plan {
    geometry: usize,
    policy: DiscardPolicy,
    frames: Vec<u64>,
    /// Of a thousand packets.
    lost: u16,
    copied: u16,
    seed: u64,
}

fn plan() -> impl Strategy<Value = Plan> {
    let policy = prop_oneof![
        Just(DiscardPolicy::Nothing),
        Just(DiscardPolicy::Empty),
        Just(DiscardPolicy::Partial),
    ];
    let lost = prop_oneof![Just(0_u16), 0..20_u16, 0..900_u16];
    // Sixteen images under way, of which two are closed for the next ones: none of a plan's frames is.
    let frames = prop::collection::btree_set(100..114_u64, 1..5);
    (0..4_usize, policy, frames, lost, 0..300_u16, any::<u64>()).prop_map(
        |(geometry, policy, frames, lost, copied, seed)| Plan {
            geometry,
            policy,
            frames: frames.into_iter().collect(),
            lost,
            copied,
            seed,
        },
    )
}

/// A generator of numbers for shuffling.
fn numbers(mut state: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn images_are_those_of_brute_force(plan in plan()) {
        let geometry = geometries()[plan.geometry];
        let mut random = numbers(plan.seed);
        let mut sent = Vec::new();
        for &frame in &plan.frames {
            for key in geometry.keys(frame) {
                if random(1000) >= usize::from(plan.lost) {
                    sent.push(key);
                    if random(1000) < usize::from(plan.copied) {
                        sent.push(key);
                    }
                }
            }
        }
        for n in (1..sent.len()).rev() {
            sent.swap(n, random(n + 1));
        }
        let (mut placer, mut reader) = images::<u16>(&geometry.config(plan.policy)).unwrap();
        let mut frames = Frames::new();
        for &key in &sent {
            let placed = placer.place(geometry.stream(key), &geometry.payload(key), Moment(0));
            let packets = frames.entry(key.frame).or_default();
            if packets.contains(&key) {
                prop_assert_eq!(placed, Err(Cause::Duplicate));
            } else {
                packets.push(key);
                prop_assert_eq!(placed, Ok(()));
            }
        }
        reader.close_all();
        let delivered = poll(&mut reader, 0);
        let all = geometry.keys(0).len();
        let numbers = match (frames.keys().next(), frames.keys().last()) {
            (Some(&first), Some(&last)) => first..last + 1,
            _ => 0..0,
        };
        let none = Vec::new();
        let expected: Vec<_> = numbers
            .clone()
            .map(|number| (number, frames.get(&number).unwrap_or(&none)))
            .filter(|(_, packets)| match plan.policy {
                DiscardPolicy::Nothing => true,
                DiscardPolicy::Empty => !packets.is_empty(),
                DiscardPolicy::Partial => packets.len() == all,
            })
            .collect();
        prop_assert!(delivered.iter().map(Image::number).eq(expected.iter().map(|&(n, _)| n)));
        for (image, (_, packets)) in delivered.iter().zip(&expected) {
            check(&geometry, image, packets);
        }
        let counts = reader.counts();
        let placed: usize = frames.values().map(Vec::len).sum();
        let complete = frames.values().filter(|packets| packets.len() == all).count();
        let got = [
            &counts.received, &counts.complete, &counts.partial, &counts.empty, &counts.discarded,
            &counts.missing,
        ];
        let total = numbers.count();
        let is = [
            frames.len(), complete, frames.len() - complete, total - frames.len(),
            total - expected.len(), total * all - placed,
        ];
        prop_assert_eq!(got.map(pollux_pmd::Count::get), is.map(|n| n as u64));
        let balance = placer.view().balance();
        prop_assert_eq!(balance.delivered, placed as u64);
        prop_assert_eq!(balance.dropped_for(Cause::Duplicate), (sent.len() - placed) as u64);
    }
}

#[test]
fn packets_that_are_wrong_have_a_cause_each() {
    let geometry = geometries()[0];
    let (mut placer, mut reader) = images::<u16>(&geometry.config(DiscardPolicy::Empty)).unwrap();
    let causes = *placer.causes();
    let key = geometry.keys(7)[3];
    let good = geometry.payload(key);
    let mut place = |stream: u16, bytes: &[u8]| placer.place(StreamId(stream), bytes, Moment(0));
    let changed = |at: usize, to: u8| {
        let mut bytes = good.clone();
        bytes[at] = to;
        bytes
    };
    let size = Err(causes.packet.size);
    for len in [0, 1, 47, 48, 49, 8239] {
        assert_eq!(place(0, &good[..len]), size, "{len}");
    }
    assert_eq!(place(0, &[&good[..], &[0]].concat()), size);
    for (at, to, cause) in [
        (47, 0, Cause::BadVersion),
        (47, 3, Cause::BadVersion),
        (46, 1, causes.packet.detector),
        (46, 255, causes.packet.detector),
        (12, 64, causes.packet.out_of_range),
        (15, 0x80, causes.packet.out_of_range),
    ] {
        assert_eq!(place(0, &changed(at, to)), Err(cause), "{at}: {to}");
    }
    assert_eq!(place(2, &good), Err(causes.unknown));
    assert_eq!(place(u16::MAX, &good), Err(causes.unknown));
    // Nothing of that was placed. Version 1 is read as version 2 is.
    assert_eq!(place(0, &changed(47, 1)), Ok(()));
    assert_eq!(place(0, &good), Err(Cause::Duplicate));
    let image = poll(&mut reader, TIMEOUT).remove(0);
    check(&geometry, &image, &[key]);
}

#[test]
fn wrong_configurations_are_refused_by_name() {
    let geometry = geometries()[1];
    let refusal = |layout: Layout, route: Route| {
        let config = ReceiveConfig::new(layout, route);
        images::<u16>(&config).err().unwrap().to_string()
    };
    let one = refusal(geometry.layout, Route::Modules(vec![1]));
    assert!(
        one.starts_with("1 module identifiers for a detector of 2"),
        "{one}"
    );
    let three = refusal(geometry.layout, Route::Streams(vec![StreamId(1); 3]));
    assert!(
        three.starts_with("3 streams for a detector of 2"),
        "{three}"
    );
    let twice = refusal(geometry.layout, Route::Modules(vec![5, 5]));
    assert!(
        twice.starts_with("module identifiers 5 is named twice"),
        "{twice}"
    );
    let config = geometry.config(DiscardPolicy::Empty);
    let bits = images::<u32>(&config).err().unwrap().to_string();
    assert!(
        bits.starts_with("images of 32 bits a raw pixel from a detector that sends 16"),
        "{bits}"
    );
}

#[test]
fn any_bytes_are_placed_or_counted() {
    let geometry = geometries()[3];
    let (mut placer, mut reader) = images::<u16>(&geometry.config(DiscardPolicy::Nothing)).unwrap();
    let mut random = numbers(1);
    let good = geometry.payload(geometry.keys(3)[0]);
    for n in 0..3000 {
        let mut bytes = good.clone();
        for _ in 0..random(4) {
            bytes[random(48)] = random(256) as u8;
        }
        bytes.truncate(bytes.len() - random(8) / 7);
        let _ = placer.place(StreamId(random(3) as u16), &bytes, Moment(n));
        let images = std::iter::from_fn(|| reader.poll(Moment(n))).take(100);
        assert!(
            images
                .map(|image| image.pixels().len())
                .all(|len| len == 2 << 17)
        );
    }
    let balance = placer.view().balance();
    assert_eq!(balance.delivered + balance.dropped_total(), 3000);
}
