//! What is said through the control queue, and which features are agreed on.

use super::*;

#[test]
fn the_filter_is_what_was_asked_for() {
    let macs = "01:00:5e:00:00:fb+33:33:00:00:00:fb";
    let listed = [[1, 0, 0x5e, 0, 0, 0xfb], [0x33, 0x33, 0, 0, 0, 0xfb]];
    for packed in [0, bit::PACKED] {
        for (options, promiscuous, all, multicast) in [
            ("", false, false, &[][..]),
            (",promisc=on", true, false, &[]),
            (",multicast=all", false, true, &[]),
            (&format!(",multicast={macs}"), false, false, &listed),
        ] {
            let device = device(ALL & !bit::PACKED | packed);
            let rig = Rig::new(&device, options, 1, pool(2048));
            device.with(|model, _| {
                assert_eq!(model.promiscuous, promiscuous, "{options}");
                assert_eq!(model.all_multicast, all, "{options}");
                assert_eq!(model.multicast, multicast, "{options}");
            });
            rig.stop();
        }
    }
}

#[test]
fn each_feature_can_be_missing() {
    let needed = bit::VERSION_1 | bit::ACCESS_PLATFORM;
    for missing in 0..64 {
        let missing = 1 << missing;
        if missing & needed != 0 {
            continue;
        }
        let device = device(ALL & !missing);
        let port = probe(&device, "").unwrap();
        let several = missing & (bit::SEVERAL_QUEUES | bit::CONTROL) == 0;
        assert_eq!(
            port.capabilities().max_rx_queues,
            if several { 4 } else { 1 }
        );
        assert_eq!(port.capabilities().mac.is_some(), missing != bit::MAC);
        let longest = if missing == bit::MTU { 1514 } else { 9014 };
        assert_eq!(port.capabilities().max_frame, longest);
        let offers_checksums = missing != bit::CHECKSUM;
        assert_eq!(port.capabilities().checksum_offload, offers_checksums);
        let config = PortConfig {
            checksum_offload: offers_checksums,
            ..PortConfig::new(pool(9100))
        };
        let mut rig = Rig::start(port, &device, config).unwrap();
        let accepted = device.with(|model, _| model.accepted());
        // One pair needs no feature.
        let wanted = ALL & !missing & !bit::SEVERAL_QUEUES;
        let wanted = match missing {
            bit::CONTROL => wanted & !bit::CONTROL_RX,
            bit::CHECKSUM => wanted & !bit::GUEST_CHECKSUM,
            _ => wanted,
        };
        assert_eq!(accepted, wanted, "without {missing:#x}");
        rig.receive(0, &frame(1, 60));
        assert_eq!(rig.poll(0), [frame(1, 60)]);
        assert!(rig.send(0, &frame(2, 60), &[]));
        rig.stop();
    }
}

#[test]
fn queues_are_as_long_as_the_device_lets_them_be() {
    for (most, packed, expected) in [
        (256, 0, 256),
        (1024, 0, 1000_u16.next_power_of_two() / 2),
        (1, 0, 1),
        (3, 0, 2),
        (200, 0, 128),
        (200, bit::PACKED, 200),
        (2, bit::PACKED, 2),
        (u16::MAX, bit::PACKED, 1000),
        (u16::MAX, 0, 512),
    ] {
        let device = device(ALL & !bit::PACKED & !bit::CONTROL & !bit::CONTROL_RX | packed);
        device.with(|model, _| model.max_size = most);
        let config = PortConfig {
            ring: 1000,
            ..PortConfig::new(pool(2048))
        };
        let mut rig = Rig::start(probe(&device, ",mtu=1500").unwrap(), &device, config).unwrap();
        let sizes = device.with(|model, _| [0, 1].map(|queue| model.size_of(queue)));
        assert_eq!(sizes, [expected; 2], "{most}, {packed:#x}");
        rig.receive(0, &frame(1, 60));
        assert_eq!(rig.poll(0), [frame(1, 60)]);
        rig.stop();
    }
}

#[test]
fn registers_for_notifications_can_be_one_or_many() {
    for (multiplier, step) in [(0, 1), (0, 1000), (2, 1), (4, 3), (4096, 0)] {
        let device = device(ALL);
        device.with(|model, _| {
            set_multiplier(model, multiplier);
            model.notify_step = step;
        });
        let mut rig = Rig::new(&device, "", 2, pool(2048));
        assert!(rig.send(1, &frame(1, 60), &[]));
        assert_eq!(device.with(|model, _| model.sent.len()), 1);
        rig.stop();
    }
}

/// Of the capability for notifications, which is the last.
pub(super) fn set_multiplier(model: &mut VirtioNet, multiplier: u32) {
    model.space[0x8c..0x90].copy_from_slice(&multiplier.to_le_bytes());
}
