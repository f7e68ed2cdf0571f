//! The card's identity, and its counts.

use pollux_card_model::registers::{BLOCKS, card, clop, host, port, tx};
use pollux_card_model::{Block, GIT_HASH, SimulatedCard};

use super::support::{Make, US, count, end, rig, sent, settle};
use super::transmit::Sending;
use crate::rig::{Form, datagram};

/// The chain of blocks, the number of all resources, and the time.
pub fn a_card_tells_what_it_is<C: SimulatedCard>(make: Make<'_, C>) {
    let rig = rig(make);
    let about = |register, n| rig.read(&card::THIS, 0, register, n);
    let hash: Vec<u8> = (0..card::GIT_HASH.count)
        .flat_map(|n| about(card::GIT_HASH, n).to_le_bytes())
        .collect();
    assert_eq!(hash, GIT_HASH);
    assert_eq!(about(card::HAS, 0).to_le_bytes(), [4, 16, 0, 4]);
    assert_eq!(about(card::EVENT_QUEUES, 0), 256);
    assert_eq!(about(card::ENTRIES, 0), 256 << 16 | 128);
    assert_eq!(about(card::SIZES, 0), 8 << 24 | 128 << 16 | 2048);
    // Instances of a kind are consecutive, and the last block has no successor.
    let instances = |block: &'static Block| (0..block.count).map(move |n| (block, n));
    let mut at = 0;
    for (block, n) in BLOCKS.iter().flat_map(instances) {
        assert_eq!(at, block.at + n * block.step, "{} {n}", block.name);
        let head = rig.read(block, n, port::BLOCK, 0);
        assert_eq!((head & 0xffff, head >> 24), (block.kind, n as u32));
        at = rig.read(block, n, port::NEXT, 0) as usize;
    }
    assert_eq!(at, 0);
    let pcs = |n| rig.read(&port::THIS, n, port::PCS_STATUS, 0);
    assert!((0..port::THIS.count).all(|n| pcs(n) == 0), "it has a PCS");
    // Cycles of 6.4 ns.
    let before = rig.read64(&card::THIS, 0, card::STAMP, 0);
    rig.advance(64 * US);
    let passed = rig.read64(&card::THIS, 0, card::STAMP, 0) - before;
    assert!((10_000..10_400).contains(&passed), "{passed} cycles");
    end(rig);
}

/// Frames, bytes, payloads, packets, descriptors, and requests to the host.
pub fn what_was_done_is_counted<C: SimulatedCard>(make: Make<'_, C>) {
    let mut sending = Sending::new(make);
    let rig = &mut sending.rig;
    rig.add_list(0, 4096, 1000);
    rig.add_stream(0, 0, 5000, Form::Payload);
    let host_count = |rig: &crate::rig::Rig<C>| {
        [host::READS, host::WRITES].map(|counter| rig.read64(&host::THIS, 0, counter, 0))
    };
    let bytes = [
        port::RX_FRAMES,
        port::RX_BYTES,
        port::TX_FRAMES,
        port::TX_BYTES,
    ];
    let before = bytes.map(|counter| count(rig, 0, counter));
    let [reads, writes] = host_count(rig);
    for len in [18, 300] {
        rig.put(0, datagram(0, 7, 5000, &vec![1; len]));
    }
    assert_eq!(settle(rig).len(), 2);
    assert_eq!(rig.read(&clop::THIS, 0, clop::LIST_SERIAL, 0), 1);
    for len in [18, 0, 1000] {
        sending.packet(&vec![2; len], 0, 0);
    }
    sending.doorbell();
    let rig = &sending.rig;
    assert_eq!(sent(rig, 0).len(), 3);
    let after = bytes.map(|counter| count(rig, 0, counter));
    // 42 bytes of headers around each, and 60 at least.
    let wanted = [2, 60 + 342, 3, 60 + 60 + 1042];
    for ((before, after), wanted) in before.iter().zip(after).zip(wanted) {
        assert_eq!(after - before, wanted);
    }
    assert_eq!(rig.read(&tx::THIS, 0, tx::RING_CONSUMER, 0), 3);
    assert_eq!(rig.read64(&tx::THIS, 0, tx::BYTES, 0), 1018);
    let [more_reads, more_writes] = host_count(rig);
    // Descriptors, two packets that have any bytes; two payloads, their event, three of packets.
    assert!(more_reads - reads >= 3 && more_writes - writes >= 6);
    assert_eq!(sending.events().len(), 3);
    end(sending.rig);
}
