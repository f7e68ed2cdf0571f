//! The clock of the ports stands, is not there yet, or is reset, on the RTL: the host's accesses are answered,
//! the card tells, and goes on where it can.

#[cfg(not(has_verilator))]
#[test]
fn card_from_its_rtl() {
    println!("skipped: no simulated card: built without the feature `verilated`, or no Verilator");
}

#[cfg(has_verilator)]
mod verilated {
    use pollux_card_model::SimulatedCard;
    use pollux_card_model::registers::{card, host, port, tlb, tx};
    use pollux_cosim::CosimDevice;
    use pollux_cosim::pcie::Behaviour;
    use pollux_cosim::rig::{Form, Rig, datagram};
    use pollux_cosim::verilated::VerilatedCard;

    type CardRig = Rig<VerilatedCard>;

    /// A microsecond, in picoseconds.
    const US: u64 = 1_000_000;
    /// Longest time from a register access to its answer while the clock stands, besides the host's own.
    const ANSWER_PS: u64 = 2 * US + 2 * 500_000;
    const NET: u32 = 2;

    fn rig(card: VerilatedCard) -> CardRig {
        let mut rig = Rig::new(CosimDevice::new(card)).expect("a card");
        // Broadcast, which needs no ARP, also by a port that has lost its settings.
        rig.destination = 4000 << 48 | 5000 << 32 | u64::from(u32::MAX);
        for port in 0..2 {
            rig.add_list(port as u16 * 32, 4096, 1000);
        }
        rig
    }

    fn open_ports(rig: &CardRig) {
        for port in 0..2 {
            rig.add_stream(port, 0, 5000, Form::Payload);
            rig.write(&port::THIS, port, port::DESTINATION_IP, 0, u32::MAX);
            rig.enable(port);
        }
    }

    fn status(rig: &CardRig) -> u32 {
        rig.read(&card::THIS, 0, card::STATUS, 0)
    }

    /// Waits until the card says that its ports are up.
    fn wait_for_ports(rig: &CardRig) {
        for _ in 0..20 {
            if status(rig) & NET != 0 {
                return;
            }
            rig.advance(US / 10);
        }
        panic!("the ports do not come up");
    }

    /// Payloads arrive, in their turn, and packets leave.
    fn works(rig: &mut CardRig, firsts: [u32; 2]) {
        for port in 0..2 {
            while rig.device.with(|card, _| card.take(port)).is_some() {}
            for number in 0..3 {
                rig.put(port, datagram(port, number, 5000, &[number as u8; 700]));
            }
        }
        rig.advance(20 * US);
        let found = rig.flush();
        for (port, first) in (0..2).zip(firsts) {
            let of_port: Vec<_> = found.iter().filter(|one| one.list == 32 * port).collect();
            let turns: Vec<_> = of_port.iter().map(|one| one.sequence).collect();
            assert_eq!(turns, [first, first + 1, first + 2], "port {port}");
            assert!(
                of_port
                    .iter()
                    .zip(0..)
                    .all(|(one, n)| one.bytes == [n; 700])
            );
            rig.send(port.into(), &[9; 100]);
        }
        rig.advance(20 * US);
        for port in 0..2 {
            let frame = rig.device.with(|card, _| card.take(port));
            let frame = frame.expect("a frame was sent");
            assert!(frame.bytes.ends_with(&[9; 100]));
        }
        let broken = rig.device.with(|card, _| card.violations());
        assert!(broken.is_empty() && rig.wrong == 0, "{broken:#?}");
    }

    /// At each moment of an access, read or written, of a port or of timing.
    #[test]
    fn an_access_is_answered_when_the_clock_stops_in_it() {
        for (seed, behaviour) in [(1, Behaviour::prompt()), (2, Behaviour::adversarial())] {
            let mut rig = rig(VerilatedCard::new(seed, behaviour));
            open_ports(&rig);
            let ip = rig.read(&port::THIS, 1, port::IP, 0);
            let refused = |rig: &CardRig| rig.read64(&host::THIS, 0, host::REFUSED, 0);
            let mut cut = 0;
            for step in 0..24 {
                let before = refused(&rig);
                let stops = 200_000 + 40_000 * step;
                let begun = rig.device.with(|card, _| {
                    card.stop_net_after(stops);
                    card.now()
                });
                if step % 3 == 0 {
                    rig.write(&port::THIS, 1, port::DESTINATION_IP, 0, 7);
                }
                let value = rig.read(&port::THIS, 1, port::IP, 0);
                assert!(value == ip || value == 0, "{value:#x}");
                let took = rig.device.with(|card, _| card.now()) - begun;
                assert!(took < 2 * ANSWER_PS, "{took} ps");
                cut += u32::from(value == 0);
                rig.advance(US);
                // It stands: blocks of the ports read 0, the others as ever.
                assert_eq!(status(&rig), 0);
                assert_eq!(rig.read(&card::THIS, 0, card::FLAGS, 0), 1);
                rig.write(&card::THIS, 0, card::FLAGS, 0, 1);
                assert_eq!(rig.read(&card::THIS, 0, card::FLAGS, 0), 0);
                assert_eq!(rig.read(&port::THIS, 1, port::IP, 0), 0);
                // This one, and the one that was cut.
                assert!(refused(&rig) > before + u64::from(value == 0));
                assert_eq!(
                    rig.read(&tlb::THIS, 0, tlb::BLOCK, 0) & 0xffff,
                    tlb::THIS.kind
                );
                rig.device.with(|card, _| card.run_net(true));
                wait_for_ports(&rig);
                assert_eq!(rig.read(&port::THIS, 1, port::IP, 0), ip);
                let now = rig.read(&port::THIS, 1, port::DESTINATION_IP, 0);
                assert!(now == 7 || now == u32::MAX, "{now:#x}");
                rig.write(&port::THIS, 1, port::DESTINATION_IP, 0, u32::MAX);
            }
            assert!(cut > 0, "the clock stopped in no access");
            works(&mut rig, [0; 2]);
        }
    }

    /// A core reads a register of a port, whose clock stands or is slow; another one rings a doorbell behind it.
    #[test]
    fn a_doorbell_passes_a_read_that_waits_for_a_clock() {
        // On the bus before the read is performed; least time until a clock that stands is known.
        const BUS_PS: u64 = Behaviour::WRITE_PS;
        const KNOWN_PS: u64 = 63 * 4_000;
        let mut rig = rig(VerilatedCard::new(5, Behaviour::prompt()));
        open_ports(&rig);
        for (round, stands) in [(0, true), (1, false), (2, true)] {
            let number = rig.read(&tx::THIS, 0, tx::RING_PRODUCER, 0);
            assert_eq!(number, round);
            rig.load(0, 0, &[9; 100]);
            rig.post(0, 0, 100);
            let at = port::THIS.at + port::IP.at;
            let ring = tx::THIS.at + tx::RING_PRODUCER.at;
            let (asked, before, stops) = rig.device.with(|card, memory| {
                // It stops when the read is about to arrive.
                let stops = card.now() + BUS_PS - 20_000;
                if stands {
                    card.stop_net_after(BUS_PS - 20_000);
                }
                card.request_read(0, at, 4);
                let before = card.traffic().reads;
                card.write(memory, 0, ring, 4, number + 1);
                (card.now(), before, stops)
            });
            // The card requests the descriptor, and the read is still to be performed.
            let mut began = None;
            let mut answered = None;
            while answered.is_none() {
                rig.advance(4_000);
                rig.device.with(|card, _| {
                    if began.is_none() && card.traffic().reads > before {
                        began = Some(card.now());
                    }
                    answered = card.take_answer().map(|_| card.now());
                    assert!(card.now() < asked + 10 * ANSWER_PS, "no answer");
                });
            }
            let (began, answered) = (began.expect("a descriptor"), answered.expect("an answer"));
            assert!(
                began + BUS_PS < answered,
                "{began} ps, when the read was done {answered} ps"
            );
            if stands {
                assert!(began < stops + KNOWN_PS, "{began} ps, {stops} ps");
                rig.device.with(|card, _| card.run_net(true));
                wait_for_ports(&rig);
                rig.write(&card::THIS, 0, card::FLAGS, 0, 1);
            }
            rig.advance(20 * US);
            let frame = rig.device.with(|card, _| card.take(0));
            assert!(frame.expect("a packet").bytes.ends_with(&[9; 100]));
        }
        works(&mut rig, [0; 2]);
    }

    /// Lists, rings and pages are set up before the ports are there.
    #[test]
    fn a_card_starts_before_its_pll_is_locked() {
        let mut rig = rig(VerilatedCard::unlocked(3, Behaviour::adversarial()));
        assert_eq!(status(&rig), 0);
        assert_eq!(rig.read(&tlb::THIS, 0, tlb::ENTRY_CTRL, 0) & 1, 1);
        open_ports(&rig);
        assert_eq!(rig.read(&port::THIS, 0, port::IP, 0), 0, "nothing is there");
        // The clock is there before its reset ends, as at a transceiver.
        rig.device.with(|card, _| card.run_net(true));
        rig.advance(US);
        assert_eq!(status(&rig), 0);
        rig.device.with(|card, _| card.hold_net(false));
        wait_for_ports(&rig);
        assert_eq!(rig.read(&card::THIS, 0, card::FLAGS, 0), 0);
        open_ports(&rig);
        works(&mut rig, [0; 2]);
    }

    /// The ports are reset under traffic, with and without their clock: what is cut is not announced, and lists
    /// and rings go on in their turn.
    #[test]
    fn a_reset_of_the_ports_leaves_the_core_alone() {
        let mut rig = rig(VerilatedCard::new(4, Behaviour::adversarial()));
        open_ports(&rig);
        let mut placed = [0; 2];
        for round in 0..12_u64 {
            for port in 0..2 {
                for number in 0..4 {
                    rig.put(port, datagram(port, number, 5000, &[1; 1400]));
                }
                rig.send(port, &[9; 1400]);
            }
            rig.advance(US / 2 + round * 170_000);
            rig.device.with(|card, memory| {
                if round % 2 == 0 {
                    card.run_net(false);
                }
                card.hold_net(true);
                card.advance(memory, US / 20 + round * 7_000);
                card.run_net(true);
                if round % 3 == 0 {
                    card.advance(memory, 20_000);
                }
                card.hold_net(false);
            });
            wait_for_ports(&rig);
            assert_eq!(rig.read(&card::THIS, 0, card::FLAGS, 0), 1);
            rig.write(&card::THIS, 0, card::FLAGS, 0, 1);
            assert_eq!(rig.read(&port::THIS, 0, port::MAC_CTRL, 0) & 3, 0);
            // What is left of the frames on the wire is sent to a port that is closed.
            rig.advance(10 * US);
            open_ports(&rig);
            rig.advance(20 * US);
            for one in rig.flush() {
                assert_eq!(one.bytes, [1; 1400]);
                placed[usize::from(one.list / 32)] += 1;
            }
            let ring = rig.read(&tx::THIS, 0, tx::RING_STATUS, 0);
            assert_eq!(ring & 3, 1, "the ring is idle, without an error");
        }
        for (list, placed) in [(0, placed[0]), (32, placed[1])] {
            let [of_list, ..] = rig.outcomes(list);
            assert_eq!(u64::from(placed), of_list);
        }
        works(&mut rig, placed);
    }
}
