use proptest::prelude::*;

use super::*;

proptest! {
    /// In any order, all fragments give back their datagrams; without one fragment, its datagram is
    /// missing, and its other fragments are counted.
    #[test]
    fn any_order_gives_back_the_datagrams(
        lens in proptest::collection::vec(1usize..6000, 1..6),
        units in proptest::collection::vec(1usize..90, 1..9),
        data_room in prop_oneof![Just(128usize), Just(700), Just(2048)],
        order in any::<u64>(),
        lost in any::<prop::sample::Index>(),
    ) {
        let sizes: Vec<_> = units.iter().map(|n| 8 * n + 400).collect();
        let mut frames = Vec::new();
        for (id, &len) in lens.iter().enumerate() {
            let whole = Frame { id: id as u16, ..Frame::udp(&payload(len)) };
            if whole.body.len() > sizes[0] {
                frames.extend(fragments(&whole, &sizes).into_iter().map(|frame| (id, frame)));
            }
        }
        prop_assume!(!frames.is_empty());
        // Shuffled by sorting by a hash of place and seed.
        let mut places: Vec<_> = (0..frames.len()).collect();
        places.sort_by_key(|&n| (n as u64 ^ order).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
        let shuffled: Vec<_> = places.iter().map(|&n| frames[n].clone()).collect();
        let mut expected: Vec<_> = frames.iter().map(|(id, _)| *id).collect();
        expected.dedup();
        let config = ReassemblyConfig { fragments: 256, ..ReassemblyConfig::default() };

        let mut rig = Rig::new(data_room, config);
        let mut came = rig.give_all(shuffled.iter().map(|(_, frame)| frame));
        let mut sent: Vec<_> = expected.iter().map(|&id| payload(lens[id])).collect();
        came.sort();
        sent.sort();
        prop_assert_eq!(came, sent);
        let balance = rig.end();
        prop_assert_eq!(balance.delivered, frames.len() as u64);

        let lost = lost.index(shuffled.len());
        let victim = shuffled[lost].0;
        let left = shuffled.iter().enumerate().filter(|&(n, _)| n != lost);
        let mut rig = Rig::new(data_room, config);
        let came = rig.give_all(left.map(|(_, (_, frame))| frame));
        prop_assert_eq!(came.len(), expected.len() - 1);
        let balance = rig.end();
        let others = frames.iter().filter(|(id, _)| *id == victim).count() as u64 - 1;
        prop_assert_eq!(balance.dropped_for(Cause::ReassemblyTimeout), others);
        prop_assert_eq!(balance.dropped_total(), others);
    }

    /// With arbitrary fragments, every frame is accounted for, no buffer is lost, and no more
    /// buffers are held than configured. The length of each result agrees with its headers.
    #[test]
    fn nothing_is_lost_whatever_comes(
        soup in proptest::collection::vec((0u16..3, 0usize..40, 0usize..30, any::<bool>(), 0u64..40), 0..150),
    ) {
        let config = ReassemblyConfig { datagrams: 2, fragments: 12, buffers: 16, ..ReassemblyConfig::default() };
        let mut rig = Rig::new(128, config);
        for (id, unit, len, more, wait) in soup {
            rig.now = rig.now + Ns(wait * MS.0);
            let frame = Frame {
                id,
                flags_offset: unit as u16 | if more { MORE } else { 0 },
                body: payload(if more { len / 2 * 8 } else { len }),
                ..Frame::udp(&[])
            };
            rig.give(&frame.bytes());
            prop_assert!(rig.held() <= 16);
        }
        rig.end();
    }
}
