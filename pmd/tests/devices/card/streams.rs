//! Streams: what they cannot be, and records that the card cannot have written.

use std::sync::Arc;

use pollux_card_model::registers::event;
use pollux_mempool::time::Ns;
use pollux_pmd::drivers::card::{
    ExternalClock, Form, SendConfig, StreamConfig, Streams, StreamsConfig, TimingConfig,
};
use pollux_pmd::event::ClopConfig;
use pollux_pmd_testkit::adversary::Choices;
use pollux_pmd_testkit::fake::{FakeDevice, Model, grant};
use pollux_pmd_testkit::models::card::Card;

use super::pool;

/// Records of each queue of a configuration below.
const RECORDS: u32 = 32;

fn start(
    device: &FakeDevice<Card>,
    config: &StreamsConfig,
) -> Result<Streams<FakeDevice<Card>>, String> {
    let spec = "pci:0000:03:00.0,ip=10.0.0.1".parse().unwrap();
    let streams = Streams::start(Arc::new(device.clone()), &spec, config, grant());
    streams.map_err(|error| error.to_string())
}

fn stream(port: usize) -> StreamConfig {
    StreamConfig {
        port,
        udp: 5000,
        form: Form::Payload,
        clop: ClopConfig {
            buffers: 16,
            size: 256,
            ..ClopConfig::default()
        },
    }
}

fn send(ports: &[usize], ring: usize) -> StreamsConfig {
    let (ports, pool) = (ports.to_vec(), pool(64, 2048));
    StreamsConfig {
        send: Some(SendConfig { ports, ring, pool }),
        ..StreamsConfig::default()
    }
}

#[test]
fn what_cannot_be_is_refused_with_what_there_is() {
    let streams = |streams: Vec<StreamConfig>| StreamsConfig {
        streams,
        ..StreamsConfig::default()
    };
    let slow = ExternalClock {
        period: u32::MAX,
        tolerance: Some(Ns(1_000_000)),
    };
    let timing = TimingConfig {
        clock: Some(slow),
        ..TimingConfig::default()
    };
    let timed = StreamsConfig {
        timing,
        ..StreamsConfig::default()
    };
    let cases = [
        (streams(vec![stream(4)]), "ports 0 to 3"),
        (streams(vec![stream(1); 17]), "16 streams at most"),
        (send(&[0, 0], 64), "send twice"),
        (send(&[0], 100_000), "at most 65536"),
        (send(&[9], 64), "ports 0 to 3"),
        (timed, "leave out the tolerance"),
    ];
    for (config, text) in cases {
        let device = FakeDevice::new(Card::new());
        let error = start(&device, &config).err().unwrap();
        assert!(error.contains(text), "{error}");
        assert!(device.with(|_, world| world.reachable().is_empty()));
    }
}

/// Any bytes, as the next record of each queue: what tells nothing that can be is counted, and the
/// streams go on.
#[test]
fn records_that_cannot_be_are_refused() {
    let device = FakeDevice::new(Card::new());
    let timing = TimingConfig {
        events: 16,
        ..TimingConfig::default()
    };
    let config = StreamsConfig {
        streams: vec![stream(0)],
        timing,
        ..send(&[0], 16)
    };
    let mut streams = start(&device, &config).unwrap();
    let mut choices = Choices::Seeded(5);
    for at in 0..3000_u32 {
        device.with(|card, world| {
            for queue in 0..3 {
                let mut record: [u8; 64] = std::array::from_fn(|_| choices.below(256) as u8);
                // Often of a kind that there is, about something small.
                if choices.below(4) > 0 {
                    record[62] = choices.below(5) as u8;
                    record[8..32].fill(0);
                    record[8] = choices.below(4) as u8;
                    record[23] = choices.below(2) as u8;
                    record[60..62].fill(0);
                }
                let phase = (at / RECORDS).is_multiple_of(2);
                record[63] = record[63] & 0x7f | u8::from(phase) << 7;
                let mut word = |register: pollux_card_model::Register| {
                    let at = event::THIS.at + register.of(queue);
                    u64::from(Model::read(card, world, 0, at, 4))
                };
                let base = word(event::QUEUE_BASE) | word(event::QUEUE_BASE_HIGH) << 32;
                world.write(base + u64::from(at % RECORDS) * 64, &record);
            }
        });
        while let Some(announced) = streams.poll() {
            let _ = announced.buffer.payloads().count();
        }
        while streams.timing().poll().is_some() {}
        let mut cache = config.send.as_ref().unwrap().pool.cache(4).unwrap();
        let mut none = pollux_mempool::Burst::<1>::new();
        let datagram = pollux_pmd::drivers::card::Datagram {
            to: "10.0.0.2:1".parse().unwrap(),
            from: 1,
            checksum: pollux_pmd::drivers::card::DatagramChecksum::None,
        };
        assert_eq!(streams.send(0, &mut cache, &mut none, &datagram), 0);
    }
    assert!(streams.refused() > 3000, "{}", streams.refused());
    assert!(streams.timing().refused() > 1000);
    assert_eq!(streams.sent(0).unwrap().packets(), 0);
    drop(streams);
    assert!(device.with(|_, world| world.reachable().is_empty()));
}
