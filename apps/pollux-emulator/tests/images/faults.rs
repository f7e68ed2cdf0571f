//! Faults, and the record of them, against what arrives.

use std::collections::{BTreeMap, BTreeSet};

use pollux_emulator::config::Faults;
use pollux_emulator::images::config::ImagesConfig;
use pollux_emulator::images::stream::{Fault, FrameCounts};

use crate::frames::parse;
use crate::receiver::{send_all, small, stack};

fn faulty(faults: Faults) -> ImagesConfig {
    ImagesConfig {
        modules: 2,
        interfaces: 2,
        frames: 40,
        first_frame: 7,
        faults,
        ..small()
    }
}

/// Packets of a frame from all senders, in the configuration of these tests.
const PACKETS: usize = 256;

/// Frame, sender and number of a packet.
type Key = (u64, u16, u32);

/// Packets that arrived intact, with their numbers of times; and those with a wrong checksum.
fn arrived(config: &ImagesConfig, frames: &[(u16, Vec<u8>)]) -> (BTreeMap<Key, u32>, usize) {
    let (mut intact, mut wrong) = (BTreeMap::new(), 0);
    for (_, frame) in frames {
        match parse(frame) {
            Ok(packet) => {
                let sender = packet.ports.1 - config.addresses.dst_port;
                *intact
                    .entry((packet.frame, sender, packet.packet))
                    .or_insert(0) += 1;
            }
            Err(_) => wrong += 1,
        }
    }
    (intact, wrong)
}

#[test]
fn exactly_the_listed_packets_are_missing() {
    let config = faulty(Faults {
        lost: 0.002,
        late: 0.01,
        late_us: 700,
        duplicated: 0.01,
        reordered: 0.01,
        corrupted: 0.002,
    });
    let (frames, report) = send_all(&config, stack(&config), 1);
    let (intact, wrong) = arrived(&config, &frames);
    let (done, faults) = (&report.done, report.done.faults);
    let count = |fault| {
        done.fault_list
            .iter()
            .filter(|record| record.fault == fault)
            .count() as u64
    };
    assert_eq!(count(Fault::Lost), faults.lost);
    assert_eq!(count(Fault::Late), faults.late);
    assert_eq!(count(Fault::Corrupted), faults.corrupted);
    assert_eq!(wrong as u64, faults.corrupted);
    assert!(
        faults.lost > 5 && faults.corrupted > 5 && faults.late > 50,
        "{faults:?}"
    );
    assert!(
        faults.duplicated > 50 && faults.reordered > 50,
        "{faults:?}"
    );
    let twice = intact.values().filter(|times| **times == 2).count();
    assert_eq!(twice as u64, faults.duplicated);
    assert_eq!(done.packets_made, 40 * PACKETS as u64);
    assert_eq!(
        report.packets_sent,
        done.packets_made - faults.lost + faults.duplicated
    );

    let mut missing = BTreeSet::new();
    for frame in 7..47 {
        for sender in 0..4 {
            let packets = (0..64).map(|packet| (frame, sender, packet));
            missing.extend(packets.filter(|key| !intact.contains_key(key)));
        }
    }
    let listed: BTreeSet<Key> = done
        .fault_list
        .iter()
        .filter(|record| record.fault != Fault::Late)
        .map(|r| (r.frame, r.module * 2 + r.interface, u32::from(r.packet)))
        .collect();
    assert_eq!(missing, listed);

    let partial: BTreeSet<u64> = missing.iter().map(|key| key.0).collect();
    let of_modules: BTreeSet<_> = missing.iter().map(|key| (key.0, key.1 / 2)).collect();
    let counts = |all: usize, partial: usize| FrameCounts {
        complete: (all - partial) as u64,
        partial: partial as u64,
        empty: 0,
    };
    assert_eq!(done.images, counts(40, partial.len()));
    assert_eq!(done.module_frames, counts(80, of_modules.len()));
    assert!(partial.len() > 5 && partial.len() < 40);
}

#[test]
fn lost_frames_are_empty() {
    let config = faulty(Faults {
        lost: 1.0,
        ..Faults::default()
    });
    let (frames, report) = send_all(&config, stack(&config), 1);
    assert_eq!((frames.len(), report.packets_sent), (0, 0));
    assert_eq!(
        (report.done.images.empty, report.done.module_frames.empty),
        (40, 80)
    );
    assert!(report.complete);
}

#[test]
fn the_faults_are_those_of_the_seed() {
    let faults = Faults {
        lost: 0.01,
        late: 0.01,
        reordered: 0.02,
        ..Faults::default()
    };
    let config = faulty(faults);
    let (first, report) = send_all(&config, stack(&config), 1);
    assert!(first == send_all(&config, stack(&config), 1).0);
    // The images are of the seed too.
    let other = ImagesConfig { seed: 2, ..config };
    let (second, others) = send_all(&other, stack(&other), 1);
    assert!(first[0] != second[0] && report.done.fault_list != others.done.fault_list);
}

/// A reordered packet is behind the next one of its sender, a late one behind those of 700 us.
#[test]
fn packets_are_as_late_as_told() {
    let position = |faults| {
        let config = faulty(faults);
        let (frames, report) = send_all(&config, stack(&config), 1);
        let mut last = BTreeMap::new();
        let mut behind = Vec::new();
        for (_, frame) in &frames {
            let packet = parse(frame).unwrap();
            let number = packet.frame * 64 + u64::from(packet.packet);
            let highest = last.entry(packet.ports.1).or_insert(0);
            if number < *highest {
                behind.push((packet.frame, *highest - number));
            }
            *highest = number.max(*highest);
        }
        (behind, report.done.faults)
    };
    let (behind, faults) = position(Faults {
        reordered: 0.02,
        ..Faults::default()
    });
    assert_eq!(behind.len() as u64, faults.reordered);
    assert!(behind.iter().all(|(_, by)| *by == 1), "{behind:?}");

    // 6.6 us from packet to packet, 64 packets a frame, and 500 us from frame to frame: 700 us are a
    // frame and 31 packets, or less by those that the pause between two frames would have had.
    let (behind, faults) = position(Faults {
        late: 0.02,
        late_us: 700,
        ..Faults::default()
    });
    // Those of the last two frames have few others behind them.
    let (last, behind): (Vec<_>, Vec<_>) = behind.into_iter().partition(|(frame, _)| *frame >= 45);
    assert!((behind.len() + last.len()) as u64 <= faults.late && behind.len() > 150);
    assert!(
        behind.iter().all(|(_, by)| (80..=95).contains(by)),
        "{behind:?}"
    );
}
