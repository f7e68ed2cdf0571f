//! The RTL of the card, without a driver: registers, frames in, buffers and events out.

#[cfg(not(has_verilator))]
#[test]
fn card_from_its_rtl() {
    println!("skipped: no simulated card: built without the feature `verilated`, or no Verilator");
}

#[cfg(has_verilator)]
mod verilated {
    use std::collections::BTreeMap;

    use pollux_card_model::registers::port;
    use pollux_cosim::CosimDevice;
    use pollux_cosim::pcie::Behaviour;
    use pollux_cosim::rig::{Form, Payload, Rig, datagram};
    use pollux_cosim::verilated::VerilatedCard;
    use pollux_pmd::bus::{Bus, Device};

    fn card(seed: u64, behaviour: Behaviour) -> CosimDevice<VerilatedCard> {
        CosimDevice::new(VerilatedCard::new(seed, behaviour))
    }

    fn no_violations(card: &CosimDevice<VerilatedCard>) {
        let broken = card.with(|card, _| card.violations());
        assert!(broken.is_empty(), "{broken:#?}");
    }

    #[test]
    fn the_card_tells_what_it_is() {
        for seed in 0..4 {
            let behaviour = if seed % 2 == 0 {
                Behaviour::prompt()
            } else {
                Behaviour::adversarial()
            };
            let card = card(seed, behaviour);
            let bus = card.bar(0, 128 << 10).expect("registers");
            assert_eq!(bus.read32(8), u32::from_le_bytes(*b"PLUX"));
            // Scratch: bytes and halves.
            bus.write32(0x30, 0x1122_3344);
            bus.write8(0x31, 0x55);
            bus.write16(0x32, 0x6677);
            assert_eq!(bus.read32(0x30), 0x6677_5544);
            assert_eq!((bus.read8(0x33), bus.read16(0x30)), (0x66, 0x5544));
            no_violations(&card);
        }
    }

    /// The streams of a port are 64 bytes of registers.
    #[test]
    fn accesses_of_up_to_64_bytes_are_split() {
        // Of the block and the second beat, in steps of bytes.
        let places = [
            (0, 64),
            (4, 60),
            (3, 10),
            (33, 31),
            (0, 32),
            (28, 8),
            (61, 3),
        ];
        for seed in 0..2 {
            let card = card(seed, Behaviour::adversarial());
            let base = port::THIS.at + port::STREAM.at;
            let writable = port::STREAM.writable.to_le_bytes();
            let mut known = [0; 64];
            card.with(|card, memory| {
                for (n, (at, len)) in places.into_iter().enumerate() {
                    let bytes: Vec<u8> = (0..len).map(|i| (i * 37 + n * 11) as u8 ^ 0xa5).collect();
                    card.write_bytes(memory, 0, base + at, &bytes);
                    for (i, byte) in bytes.iter().enumerate() {
                        known[at + i] = byte & writable[(at + i) % 4];
                    }
                    for (at, len) in places {
                        let read = card.read_bytes(memory, 0, base + at, len);
                        assert_eq!(read, known[at..at + len], "{len} bytes at {at}");
                    }
                }
            });
            no_violations(&card);
        }
    }

    /// Payloads of all lengths to two streams of each port, and whole frames to the default list.
    #[test]
    fn what_comes_by_the_wire_is_in_memory_when_it_is_announced() {
        for seed in 0..4 {
            let behaviour = if seed % 2 == 0 {
                Behaviour::prompt()
            } else {
                Behaviour::adversarial()
            };
            let mut rig = Rig::new(card(seed, behaviour)).expect("a card");
            let mut sent: BTreeMap<u16, Vec<(u16, Vec<u8>)>> = BTreeMap::new();
            for port in 0..4 {
                for (stream, udp) in [(0, 5000), (7, 5007)] {
                    rig.add_list(port as u16 * 32 + stream, 4096, 2000);
                    rig.add_stream(port, stream.into(), udp, Form::Payload);
                }
                rig.enable(port);
            }
            for number in 0..60_u16 {
                for port in 0..4 {
                    let len = match number % 4 {
                        0 => usize::from(number),
                        1 => usize::from(number) * 24,
                        _ => 18,
                    };
                    let payload: Vec<_> = (0..len)
                        .map(|i| (i * 7 + port) as u8 ^ number as u8)
                        .collect();
                    let stream = number % 2 * 7;
                    rig.put(port, datagram(port, number, 5000 + stream, &payload));
                    sent.entry(port as u16 * 32 + stream)
                        .or_default()
                        .push((number, payload));
                }
            }
            let mut received: BTreeMap<u16, Vec<(u16, Vec<u8>)>> = BTreeMap::new();
            let mut keep = |found: Vec<Payload>| {
                for payload in found {
                    let list = received.entry(payload.list).or_default();
                    assert_eq!(payload.sequence as usize, list.len());
                    list.push((payload.source_port, payload.bytes));
                }
            };
            for _ in 0..60 {
                rig.advance(1_000_000);
                keep(rig.receive());
            }
            keep(rig.flush());
            assert_eq!(rig.wrong, 0);
            for (list, sent) in &sent {
                assert_eq!(
                    rig.outcomes(*list),
                    [sent.len() as u64, 0, 0, 0, 0, 0, 0, 0],
                    "list {list}"
                );
            }
            assert_eq!(received, sent);
            for which in 0..4 {
                assert_eq!(rig.read64(&port::THIS, which, port::RX_FRAMES, 0), 60);
            }
            rig.device
                .with(|_, memory| assert_eq!(memory.trespasses, 0));
            no_violations(&rig.device);
        }
    }
}
