//! Losses that no frame causes: full fifos, a host that does not complete reads or disables bus
//! mastering, links with a fault, and pauses.

use pollux_card_model::registers::{card, clop, host, port, tx};
use pollux_card_model::{LinkSignal, ReadError, SimulatedCard, WireFrame};
use pollux_pmd::bus::Device;
use pollux_pmd::net::UDP_HEADERS;

use super::answers::ping;
use super::support::{Make, US, count, end, rig, sent, settle};
use super::transmit::Sending;
use crate::rig::{Form, Rig, datagram};

/// A rig that receives payloads on port 0.
fn receiving<C: SimulatedCard>(make: Make<'_, C>) -> Rig<C> {
    open(rig(make))
}

/// A rig with a list and a stream on port 0.
fn open<C: SimulatedCard>(mut rig: Rig<C>) -> Rig<C> {
    rig.add_list(0, 4096, 1000);
    rig.add_stream(0, 0, 5000, Form::Payload);
    rig.enable(0);
    rig
}

fn host_count<C: SimulatedCard>(rig: &Rig<C>, register: pollux_card_model::Register) -> u64 {
    rig.read64(&host::THIS, 0, register, 0)
}

/// The host accepts nothing: frames that fit the fifo wait, the rest is dropped whole and counted once.
pub fn a_full_receive_fifo_drops_whole_frames<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = receiving(make);
    rig.write(&host::THIS, 0, host::CTRL, 0, 1);
    for n in 0..40 {
        rig.put(0, datagram(0, n, 5000, &[n as u8; 1000]));
    }
    while rig.device.with(|card, _| card.coming(0)) > 0 {
        rig.advance(2 * US);
    }
    rig.advance(5 * US);
    assert_eq!(count(&rig, 0, port::RX_FRAMES), 40);
    let dropped = count(&rig, 0, port::DROP_OVERFLOW);
    assert!((20..35).contains(&dropped), "{dropped} of 40");
    rig.write(&host::THIS, 0, host::CTRL, 0, 0);
    // The writer accepts 8 bytes in each cycle.
    rig.advance(20 * US);
    let found = settle(&mut rig);
    assert_eq!(found.len() as u64 + dropped, 40);
    for payload in &found {
        assert_eq!(payload.bytes, [payload.source_port as u8; 1000]);
    }
    // All is as before.
    rig.put(0, datagram(0, 7, 5000, b"behind"));
    assert_eq!(settle(&mut rig).len(), 1);
    assert_eq!(count(&rig, 0, port::DROP_OVERFLOW), dropped);
    end(rig);
}

/// Pings while nothing may be sent: those that do not fit are counted, the others are answered.
pub fn answers_without_room_are_counted<C: SimulatedCard>(make: Make<'_, C>) {
    let rig = receiving(make);
    rig.write(&port::THIS, 0, port::MAC_CTRL, 0, 1);
    for _ in 0..30 {
        rig.put(0, WireFrame::good(ping(1000)));
    }
    rig.advance(40 * US);
    let dropped = count(&rig, 0, port::DROP_ANSWER);
    assert!(dropped > 0, "there was room for 30 answers");
    rig.write(&port::THIS, 0, port::MAC_CTRL, 0, 3);
    rig.advance(30 * US);
    let answers = sent(&rig, 0).len() as u64;
    assert_eq!(answers, count(&rig, 0, port::ECHO_FRAMES));
    assert_eq!(answers + dropped, 30);
    end(rig);
}

/// The link partner does not receive.
pub fn what_is_sent_into_a_fault_is_thrown_away<C: SimulatedCard>(make: Make<'_, C>) {
    let mut sending = Sending::new(make);
    for signal in [LinkSignal::LocalFault, LinkSignal::RemoteFault] {
        let before = count(&sending.rig, 0, port::TX_FAULT);
        sending
            .rig
            .device
            .with(|card, _| card.set_signal(0, signal));
        sending.rig.advance(5 * US);
        let status = sending.rig.read(&port::THIS, 0, port::MAC_STATUS, 0);
        let is_local = signal == LinkSignal::LocalFault;
        // No link; a local fault; a remote one.
        assert_eq!(status & 7, if is_local { 2 } else { 4 }, "{signal:?}");
        sending.packet(b"lost", 0, 0);
        sending.doorbell();
        assert!(sending.payloads().is_empty(), "{signal:?}");
        assert_eq!(count(&sending.rig, 0, port::TX_FAULT), before + 1);
        let up = LinkSignal::Idle;
        sending.rig.device.with(|card, _| card.set_signal(0, up));
        sending.rig.advance(5 * US);
        sending.packet(b"sent", 0, 0);
        sending.doorbell();
        assert_eq!(sending.payloads(), [b"sent"], "{signal:?}");
    }
    assert_eq!(sending.events().len(), 4);
    end(sending.rig);
}

/// IEEE 802.3, annex 31B: so many times 512 bits.
fn pause(quanta: u16) -> WireFrame {
    let mut frame = vec![1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 0x08, 0, 1];
    frame.extend(quanta.to_be_bytes());
    frame.resize(60, 0);
    WireFrame::good(frame)
}

/// For the requested time, until it is withdrawn, or not at all; the card counts how long.
pub fn pause_frames_hold_frames_back<C: SimulatedCard>(make: Make<'_, C>) {
    let mut sending = Sending::new(make);
    let status = |sending: &Sending<C>| {
        let status = sending.rig.read(&port::THIS, 0, port::MAC_STATUS, 0);
        status >> 5 & 1 == 1
    };
    let mac = |sending: &Sending<C>, honours: u32| {
        let control = honours << 5 | 0b11;
        sending
            .rig
            .write(&port::THIS, 0, port::MAC_CTRL, 0, control);
    };
    mac(&sending, 1);
    // 2000 x 51.2 ns.
    sending.rig.put(0, pause(2000));
    sending.rig.advance(5 * US);
    assert!(status(&sending));
    sending.packet(b"waits", 0, 0);
    sending.doorbell();
    assert!(sending.payloads().is_empty());
    sending.rig.advance(60 * US);
    assert_eq!(sending.payloads(), [b"waits"]);
    assert!(!status(&sending));
    let paused = count(&sending.rig, 0, port::TX_PAUSED);
    assert!((8_000..=16_000).contains(&paused), "{paused} cycles");
    // As long as possible, and withdrawn.
    sending.rig.put(0, pause(u16::MAX));
    sending.rig.advance(5 * US);
    sending.packet(b"waits", 0, 0);
    sending.doorbell();
    assert!(sending.payloads().is_empty());
    sending.rig.put(0, pause(0));
    assert_eq!(sending.payloads(), [b"waits"]);
    // A MAC that ignores it still consumes the frame.
    mac(&sending, 0);
    sending.rig.put(0, pause(u16::MAX));
    sending.rig.advance(5 * US);
    sending.packet(b"goes", 0, 0);
    sending.doorbell();
    assert_eq!(sending.payloads(), [b"goes"]);
    assert_eq!(count(&sending.rig, 0, port::RX_PAUSE), 4);
    assert_eq!(sending.events().len(), 3);
    end(sending.rig);
}

/// PCI 3.0 section 6.2.2: the card accepts frames, and reaches no memory.
pub fn writes_without_bus_mastering_are_thrown_away<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = receiving(make);
    rig.device.set_bus_master(false).unwrap();
    rig.put(0, datagram(0, 7, 5000, &[1; 100]));
    rig.advance(10 * US);
    assert!(host_count(&rig, host::WR_DISCARDED) > 0);
    let status = rig.read(&host::THIS, 0, host::STATUS, 0);
    assert_eq!(status & 3, 1, "idle, and no master");
    rig.device.set_bus_master(true).unwrap();
    assert!(rig.receive().is_empty());
    end(rig);
}

/// At any moment, while frames arrive and packets leave: what leaves is whole, registers answer, what is
/// discarded is counted, and after a reset the card works.
pub fn bus_mastering_comes_and_goes_under_traffic<C: SimulatedCard>(make: Make<'_, C>) {
    const LEN: usize = 200;
    let mut rig = receiving(make);
    for round in 0..12_u8 {
        rig.write(&port::THIS, 0, port::DESTINATION_IP, 0, u32::MAX);
        for n in 0..8 {
            rig.put(0, datagram(0, n, 5000, &[round; 700]));
        }
        for place in 0..4 {
            rig.load(0, place, &[round; LEN]);
            rig.post(0, place, LEN);
        }
        rig.doorbell(0);
        rig.advance(u64::from(round) * US / 3);
        rig.device.set_bus_master(false).unwrap();
        rig.load(0, 4, &[round; LEN]);
        rig.post(0, 4, LEN);
        rig.doorbell(0);
        rig.advance(US * (1 + u64::from(round) % 3));
        let magic = rig.read(&card::THIS, 0, card::MAGIC, 0);
        assert_eq!(magic, card::MAGIC.reset);
        rig.device.set_bus_master(true).unwrap();
        for frame in sent(&rig, 0) {
            assert_eq!(frame.bytes[UDP_HEADERS..], [round; LEN], "round {round}");
        }
        rig.write(&card::THIS, 0, card::CTRL, 0, 1);
        while rig.read(&card::THIS, 0, card::STATUS, 0) & 1 == 1 {
            rig.advance(US);
        }
        // Requests of the moment in which it was switched are on their way.
        rig.device.with(|_, memory| memory.trespasses = 0);
        rig = open(Rig::new(rig.device.clone()).unwrap());
        rig.write(&port::THIS, 0, port::DESTINATION_IP, 0, u32::MAX);
        rig.put(0, datagram(0, 9, 5000, &[round; 50]));
        // A host may be slow.
        rig.advance(100 * US);
        let found = settle(&mut rig);
        let lengths: Vec<_> = found.iter().map(|payload| payload.bytes.len()).collect();
        assert_eq!(lengths, [50], "round {round}");
        rig.send(0, &[round; LEN]);
        rig.advance(100 * US);
        assert_eq!(sent(&rig, 0).len(), 1, "round {round}");
    }
    assert!(host_count(&rig, host::WR_DISCARDED) > 0);
    assert!(host_count(&rig, host::RD_DISCARDED) > 0);
    end(rig);
}

/// They are ignored, and reads continue.
pub fn unexpected_completions_are_counted<C: SimulatedCard>(make: Make<'_, C>) {
    let mut sending = Sending::new(make);
    let before = host_count(&sending.rig, host::RD_UNEXPECTED);
    for tag in [0, 9, 31, 200] {
        sending
            .rig
            .device
            .with(|card, _| card.send_stray_completion(tag));
        sending.rig.advance(5 * US);
        sending.packet(b"sent", 0, 0);
        sending.doorbell();
        assert_eq!(sending.payloads(), [b"sent"], "tag {tag}");
    }
    assert_eq!(host_count(&sending.rig, host::RD_UNEXPECTED), before + 4);
    assert_eq!(sending.events().len(), 4);
    end(sending.rig);
}

/// A read stays open until its timeout; a reset waits for it too.
pub fn a_read_without_an_answer_ends_by_its_timeout<C: SimulatedCard>(make: Make<'_, C>) {
    let mut sending = Sending::new(make);
    // 200 us.
    sending.rig.write(&host::THIS, 0, host::TIMEOUT, 0, 50_000);
    let is_idle = |sending: &Sending<C>| {
        let status = sending.rig.read(&host::THIS, 0, host::STATUS, 0);
        status & 1 == 1
    };
    sending.fail_reads([None, Some(ReadError::Unanswered)]);
    sending.packet(b"lost", 0, 0);
    sending.doorbell();
    assert!(sending.events().is_empty() && !is_idle(&sending));
    let ring = sending.rig.read(&tx::THIS, 0, tx::RING_STATUS, 0);
    assert_eq!(ring & 1, 0, "the ring is at rest");
    sending.rig.advance(200 * US);
    assert_eq!(sending.events(), [(1, 1, 2)]);
    assert!(is_idle(&sending));
    assert_eq!(host_count(&sending.rig, host::RD_TIMEOUT), 1);
    // A reset while one is open.
    sending.fail_reads([Some(ReadError::Unanswered)]);
    sending.packet(b"lost", 0, 0);
    sending.doorbell();
    assert!(!is_idle(&sending));
    sending.rig.write(&card::THIS, 0, card::CTRL, 0, 1);
    let resetting = |sending: &Sending<C>| sending.rig.read(&card::THIS, 0, card::STATUS, 0) & 1;
    assert_eq!(resetting(&sending), 1);
    let list = sending.rig.read(&clop::THIS, 0, clop::BLOCK, 0);
    assert_eq!(list, 0, "no other block may be read");
    sending.rig.advance(250 * US);
    assert_eq!(resetting(&sending), 0);
    assert_eq!(host_count(&sending.rig, host::RD_TIMEOUT), 2);
    assert!(is_idle(&sending) && sending.events().is_empty());
    assert_eq!(sending.rig.read(&tx::THIS, 0, tx::RING_CTRL, 0) & 1, 0);
    end(sending.rig);
}
