//! Devices that cannot be used: each has its own error, and is left at rest.

use pollux_pmd::driver::Driver;

use super::control::set_multiplier;
use super::*;

fn refused(device: &Fake, options: &str, text: &str) {
    let config = PortConfig::new(pool(2048));
    let result = probe(device, options).and_then(|port| Rig::start(port, device, config));
    let error = result.err().unwrap().to_string();
    assert!(error.contains(text), "{error}");
    device.with(|model, world| {
        assert!(world.reachable().is_empty(), "{text}");
        assert!(model.status() == 0 || model.faults.never_rests, "{text}");
    });
}

/// A device with everything, changed.
fn bent(change: impl FnOnce(&mut VirtioNet)) -> Fake {
    let device = device(ALL);
    device.with(|model, _| change(model));
    device
}

#[test]
fn devices_from_before_the_standard() {
    let text = "disable-legacy=on";
    refused(&bent(|model| model.space[6] = 0), "", text);
    refused(&bent(|model| model.space[0x34] = 0), "", text);
    // The kinds of the windows.
    for at in [0x43, 0x43 + 40, 0x43 + 60] {
        refused(&bent(|model| model.space[at] = 99), "", text);
    }
    refused(&device(ALL & !bit::VERSION_1), "", "VIRTIO_F_VERSION_1");
}

#[test]
fn devices_that_go_past_the_iommu() {
    let offered = ALL & !bit::ACCESS_PLATFORM;
    refused(&device(offered), "", "iommu_platform=on");
    Rig::new(&device(offered), ",noiommu=on", 1, pool(2048)).stop();
}

#[test]
fn capabilities_that_make_no_sense() {
    let set = |at: usize, bytes: &'static [u8]| {
        bent(move |model| model.space[at..at + bytes.len()].copy_from_slice(bytes))
    };
    let far = &[0xf0, 0xff, 0xff, 0xff];
    for window in [0x40, 0x40 + 40, 0x40 + 60] {
        refused(&set(window + 4, &[6]), "", "disable-legacy=on");
        refused(&set(window + 4, &[0]), "", "no memory BAR 0");
        refused(&set(window + 8, far), "", "bytes, the driver needs");
        refused(&set(window + 8, &[1]), "", "where none can be");
        refused(&set(window + 12, far), "", "bytes, the driver needs");
        refused(&set(window + 12, &[0, 0]), "", "where none can be");
        refused(&set(window + 2, &[8]), "", "disable-legacy=on");
    }
    let short = "windows of registers are too short";
    refused(&set(0x40 + 12, &[0x34, 0]), "", short);
    refused(&set(0x40 + 40 + 12, &[8, 0]), "", short);
    let outside = "notification register of queue";
    refused(&set(0x40 + 60 + 12, &[1, 0]), "", outside);
    refused(&bent(|model| set_multiplier(model, u32::MAX)), "", outside);
    refused(&bent(|model| set_multiplier(model, 3)), "", outside);
    refused(&bent(|model| model.notify_step = u16::MAX), "", outside);
    // The walk of a circular list ends, with or without the needed entry.
    Rig::new(&set(0x40 + 61, &[0x40]), "", 1, pool(2048)).stop();
    refused(&set(0x41, &[0x40]), "", "disable-legacy=on");
    // Of two of a kind the first is used.
    Rig::new(&set(0x40 + 23, &[1]), "", 1, pool(2048)).stop();
    // Windows that overlap harm only the device.
    refused(
        &set(0x40 + 60 + 8, &[0, 0]),
        "",
        "the receive filter: it does not answer",
    );
}

#[test]
fn devices_that_do_not_do_as_they_say() {
    let text = "it refuses the features";
    refused(&bent(|model| model.faults.refuses = true), "", text);
    let text = "does not come to rest";
    refused(&bent(|model| model.faults.never_rests = true), "", text);
    let text = "the receive filter: it does not answer";
    refused(&bent(|model| model.faults.mute = true), "", text);
    let text = "the receive filter: it refuses";
    refused(&bent(|model| model.faults.says_no = true), "", text);
    let text = "changes faster than it can be read";
    refused(&bent(|model| model.faults.restless = true), "", text);
    let text = "queue 0 cannot have more than 0 descriptors";
    refused(&bent(|model| model.max_size = 0), "", text);
    let text = "queue 2 cannot have more than 1 descriptors";
    refused(&bent(|model| model.max_size = 1), "", text);
    for pairs in [0, 0x8000, u16::MAX] {
        let text = format!("it has {pairs} pairs of queues");
        refused(&bent(|model| model.max_pairs = pairs), "", &text);
    }
}

#[test]
fn requests_that_the_device_cannot_meet() {
    let text = "an MTU of 9001 requested, but the device offers at most 9000";
    refused(&device(ALL), ",mtu=9001", text);
    let text = "a choice of what is received requested";
    refused(&device(ALL & !bit::CONTROL_RX), ",promisc=on", text);
    refused(&device(ALL & !bit::CONTROL), ",multicast=all", text);
    let many = (0..1000).map(|n| format!("01:00:5e:00:{:02x}:{:02x}", n / 256, n % 256));
    let text = "or multicast=all";
    refused(
        &device(ALL),
        &format!(",multicast={}", many.collect::<Vec<_>>().join("+")),
        text,
    );
    let text = "one buffer for a frame";
    refused(&device(ALL & !bit::MERGEABLE), "", text);
    let device = device(ALL);
    // Frames of 9018 bytes: of 8 buffers of 2048 bytes 7 are always there, of 4 there are 4.
    for (ring, fits) in [(2, false), (4, false), (7, true), (8, true)] {
        let config = PortConfig {
            ring,
            ..PortConfig::new(pool(2048))
        };
        let result = probe(&device, "").unwrap().configure(config);
        let error = result.err().map(|error| error.to_string());
        assert_eq!(error.is_none(), fits, "{error:?}");
        assert!(error.is_none_or(|error| error.contains("no room for one in a ring of")));
    }
    device.with(|model, _| model.max_size = 4);
    let port = probe(&device, "").unwrap();
    let error = Rig::start(port, &device, config(1, pool(2048))).err();
    let error = error.map(|error| error.to_string()).unwrap();
    assert!(error.contains("no more than 4 descriptors"), "{error}");
    device.with(|model, _| model.max_size = 256);
    let config = PortConfig {
        rx_queues: 1,
        tx_queues: 2,
        ..PortConfig::new(pool(2048))
    };
    let error = probe(&device, "").unwrap().configure(config).err().unwrap();
    assert!(error.to_string().contains("as many receive queues"));
    let driver: Box<dyn Driver> = pollux_pmd::drivers::virtio::pci::open(
        Arc::new(device.clone()),
        &"pci:x".parse().unwrap(),
        grant(),
    )
    .unwrap();
    assert!(!driver.link().up, "not started");
}
