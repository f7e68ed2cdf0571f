//! The card with the PCS of each of its ports, on the RTL, and partners whose clocks differ from its own.

#[cfg(not(has_verilator))]
#[test]
fn card_from_its_rtl() {
    println!("skipped: no simulated card: built without the feature `verilated`, or no Verilator");
}

#[cfg(has_verilator)]
mod verilated {
    use pollux_card_model::registers::port;
    use pollux_card_model::{FrameEnd, SimulatedCard};
    use pollux_cosim::CosimDevice;
    use pollux_cosim::pcie::Behaviour;
    use pollux_cosim::rig::{Form, Rig, datagram};
    use pollux_cosim::verilated::{PcsState, VerilatedCard, Wires};

    /// A microsecond, in picoseconds.
    const US: u64 = 1_000_000;
    /// Bytes of payloads, in turn.
    const SIZES: [usize; 6] = [18, 700, 19, 1472, 64, 333];
    /// Time of the wire on all ports, over which a clock that is 100 ppm off gains five words.
    const WIRE_PS: u64 = 320 * US;

    fn state(rig: &Rig<VerilatedCard>, which: usize) -> PcsState {
        rig.device.with(|card, _| card.pcs(which)).expect("a PCS")
    }

    /// Counts of a port's PCS, as its registers have them.
    fn registers(rig: &Rig<VerilatedCard>, which: usize) -> PcsState {
        let count = |register| rig.read64(&port::THIS, which, register, 0);
        PcsState {
            block_lock: rig.read(&port::THIS, which, port::PCS_STATUS, 0) >> 2 & 1 == 1,
            ber: count(port::PCS_BER),
            errored_blocks: count(port::PCS_ERRORED_BLOCKS),
            prbs31_errors: count(port::PCS_PRBS31_ERRORS),
            deleted: count(port::PCS_DELETED),
            inserted: count(port::PCS_INSERTED),
            overflow: count(port::PCS_OVERFLOW),
            underflow: count(port::PCS_UNDERFLOW),
            tx_errors: count(port::PCS_TX_ERRORS),
        }
    }

    /// Each port receives at line rate from a partner 100 ppm off, one way or the other, and sends to it by its
    /// generator: nothing is lost, and the elastic buffers delete and insert.
    #[test]
    fn partners_may_be_100_ppm_off() {
        let ppm = [100, -100, 37, -100];
        let wires = Wires::Pcs { ppm, direct: false };
        let card = VerilatedCard::wired(5, Behaviour::prompt(), wires);
        let mut rig = Rig::new(CosimDevice::new(card)).expect("a card");
        for which in 0..4 {
            rig.add_list(which as u16 * 32, 16 << 10, 100_000);
            rig.add_stream(which, 0, 5000, Form::Payload);
            rig.enable(which);
            let settings = [
                (port::DESTINATION_IP, u32::MAX),
                (port::GEN_SIZE, 300 + which as u32),
                (port::GEN_GAP, 0),
                (port::GEN_PORTS, 0x0fa0_1388),
                (port::GEN_CTRL, 1),
            ];
            for (register, value) in settings {
                rig.write(&port::THIS, which, register, 0, value);
            }
            // Frames that are queued behind register accesses have gaps.
            assert_eq!(rig.read(&port::THIS, which, port::GEN_STATUS, 0), 1);
        }
        let before: [_; 4] = std::array::from_fn(|which| state(&rig, which));
        let payload = |number: usize| vec![number as u8; SIZES[number % SIZES.len()]];
        let (mut sent, mut on_wire) = (0, 0);
        while on_wire < WIRE_PS {
            let bytes = payload(sent);
            on_wire += (bytes.len() + 42).max(60) as u64 * 800 + 24 * 800;
            (0..4).for_each(|which| rig.put(which, datagram(which, 4000, 5000, &bytes)));
            sent += 1;
        }
        let (mut came, mut left) = ([0; 4], [0_u32; 4]);
        for _ in 0..WIRE_PS / (8 * US) + 5 {
            rig.advance(8 * US);
            for one in rig.receive() {
                let which = usize::from(one.list / 32);
                assert_eq!(one.bytes, payload(came[which]), "port {which}");
                came[which] += 1;
            }
            for (which, left) in left.iter_mut().enumerate() {
                while let Some(frame) = rig.device.with(|card, _| card.take(which)) {
                    assert_eq!(frame.end, FrameEnd::Good);
                    assert_eq!(frame.bytes[42..46], left.to_le_bytes());
                    *left += 1;
                }
            }
        }
        for one in rig.flush() {
            let which = usize::from(one.list / 32);
            assert_eq!(one.bytes, payload(came[which]));
            came[which] += 1;
        }
        assert_eq!(came, [sent; 4]);
        // 304 bytes of payload are 370 at the wire.
        let most = WIRE_PS / (370 * 800);
        assert!(
            left.iter().all(|&left| u64::from(left) > most * 9 / 10),
            "{left:?}"
        );
        for (which, before) in before.into_iter().enumerate() {
            let pcs = state(&rig, which);
            let counts = [before.errored_blocks, before.overflow];
            assert_eq!([pcs.errored_blocks, pcs.overflow], counts, "port {which}");
            assert!(
                pcs.block_lock && pcs.underflow == before.underflow,
                "{pcs:?}"
            );
            match ppm[which] {
                100 => assert!(pcs.deleted > before.deleted, "port {which}: {pcs:?}"),
                -100 => assert!(pcs.inserted > before.inserted, "port {which}: {pcs:?}"),
                _ => {}
            }
            // Columns are deleted, and words inserted, between both readings.
            let seen = registers(&rig, which);
            let (deleted, inserted) = (seen.deleted, seen.inserted);
            let expected = PcsState {
                deleted,
                inserted,
                ..pcs
            };
            assert_eq!(seen, expected, "port {which}");
            let near = |count: u64, total: u64| count.abs_diff(total) <= 2;
            assert!(
                near(deleted, pcs.deleted) && near(inserted, pcs.inserted),
                "port {which}: {seen:?} {pcs:?}"
            );
            let errors = [
                port::RX_SYMBOL,
                port::RX_FCS,
                port::RX_RUNT,
                port::DROP_OVERFLOW,
            ];
            for counter in errors {
                assert_eq!(rig.read64(&port::THIS, which, counter, 0), 0);
            }
        }
        let broken = rig.device.with(|card, _| card.violations());
        assert!(broken.is_empty() && rig.wrong == 0, "{broken:#?}");
    }

    /// The ports' clock stops under traffic, and goes on: the lanes find their blocks, and frames pass again.
    #[test]
    fn lanes_come_back_with_the_clock() {
        let wires = Wires::Pcs {
            ppm: [100, -100, 0, 50],
            direct: false,
        };
        let card = VerilatedCard::wired(6, Behaviour::prompt(), wires);
        let mut rig = Rig::new(CosimDevice::new(card)).expect("a card");
        for which in 0..4 {
            rig.add_list(which as u16 * 32, 16 << 10, 1000);
            rig.add_stream(which, 0, 5000, Form::Payload);
            rig.enable(which);
        }
        for round in 0..3 {
            for which in 0..4 {
                (0..8).for_each(|_| rig.put(which, datagram(which, 4000, 5000, &[7; 500])));
            }
            rig.advance(3 * US);
            rig.device.with(|card, memory| {
                card.run_net(false);
                card.advance(memory, US * (round + 1));
                card.run_net(true);
            });
            rig.advance(30 * US);
            rig.flush();
            for which in 0..4 {
                rig.put(which, datagram(which, 4000, 5000, &[8; 500]));
            }
            rig.advance(10 * US);
            let found = rig.flush();
            assert_eq!(found.len(), 4, "round {round}");
            assert!(found.iter().all(|one| one.bytes == [8; 500]));
        }
        for which in 0..4 {
            // Words that arrived while the clock stood; counts of them are lost too, but not all.
            let seen = registers(&rig, which);
            assert!(
                seen.block_lock && seen.overflow > 0,
                "port {which}: {seen:?}"
            );
        }
    }

    /// Each pair of ports on a cable tests it by PRBS31: no wrong bit; then one end stops, which the other sees.
    /// Meanwhile there is no link, and afterwards there is.
    #[test]
    fn a_cable_is_tested_by_prbs31() {
        const SEND: u32 = 1;
        const CHECK: u32 = 2;
        let card = VerilatedCard::wired(7, Behaviour::prompt(), Wires::Cable);
        let rig = Rig::new(CosimDevice::new(card)).expect("a card");
        let control = |rig: &Rig<VerilatedCard>, which, value| {
            rig.write(&port::THIS, which, port::PCS_CTRL, 0, value);
            rig.advance(2 * US);
        };
        let status = |rig: &Rig<VerilatedCard>, register| {
            std::array::from_fn::<_, 4, _>(|which| rig.read(&port::THIS, which, register, 0) & 0xf)
        };
        let errors = |rig: &Rig<VerilatedCard>| -> [u64; 4] {
            std::array::from_fn(|which| rig.read64(&port::THIS, which, port::PCS_PRBS31_ERRORS, 0))
        };
        for round in 0..2 {
            // Present, signal, block lock; link.
            assert_eq!(status(&rig, port::PCS_STATUS), [0b0111; 4]);
            assert_eq!(status(&rig, port::MAC_STATUS), [0b1001; 4]);
            (0..4).for_each(|which| control(&rig, which, SEND));
            for which in 0..4 {
                // A pattern is no blocks: the lock is lost.
                let seen = registers(&rig, which);
                assert!(seen.ber >= 16 && seen.errored_blocks > 0, "{seen:?}");
                assert!(!seen.block_lock, "port {which}");
            }
            (0..4).for_each(|which| control(&rig, which, SEND | CHECK));
            let before = errors(&rig);
            rig.advance(20 * US);
            assert_eq!(errors(&rig), before, "round {round}");
            assert_eq!(status(&rig, port::PCS_STATUS), [0b0011; 4]);
            assert!(
                status(&rig, port::MAC_STATUS)
                    .iter()
                    .all(|status| status & 0b11 == 0b10)
            );
            // Blocks of faults are no pattern: half of the bits are wrong, of 66 in each cycle of 6.4 ns.
            control(&rig, 1, CHECK);
            rig.advance(10 * US);
            let after = errors(&rig);
            assert!(after[0] - before[0] > 20_000, "{before:?} {after:?}");
            assert_eq!(after[1..], before[1..]);
            (0..4).for_each(|which| control(&rig, which, 0));
            rig.advance(30 * US);
        }
        assert_eq!(
            errors(&rig),
            std::array::from_fn(|which| state(&rig, which).prbs31_errors)
        );
    }
}
