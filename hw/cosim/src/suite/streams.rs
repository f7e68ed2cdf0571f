//! Payloads that are read in place, by the released driver.

use std::sync::Arc;

use pollux_card_model::SimulatedCard;
use pollux_mempool::time::Ns;
use pollux_pmd::drivers::card::{Announced, Form, StreamConfig, Streams, StreamsConfig};
use pollux_pmd::event::{ClopConfig, Framing};

use super::support::Make;
use crate::CosimDevice;
use crate::device::grant;
use crate::rig::datagram;

fn stream(port: usize, udp: u16, framing: Framing) -> StreamConfig {
    StreamConfig {
        port,
        udp,
        form: Form::Payload,
        clop: ClopConfig {
            buffers: 4,
            size: 4096,
            timeout: Ns(3_000),
            framing,
            ..ClopConfig::default()
        },
    }
}

/// Several streams of two ports, with records and bare; buffers that are kept, and returned in
/// another order; payloads that are not consumed; and frames without a stream.
pub fn streams_come_without_a_copy<C: SimulatedCard>(make: Make<'_, C>) {
    let device = CosimDevice::new(make());
    // Addresses do not matter here: the frames are the given ones.
    let spec = "card-sim:promisc=on".parse().unwrap();
    let configs = [
        stream(0, 5000, Framing::Records),
        stream(0, 5001, Framing::Bare { stride: 64 }),
        stream(1, 5000, Framing::Records),
    ];
    let config = StreamsConfig {
        streams: configs.to_vec(),
        ..StreamsConfig::default()
    };
    for round in 0..3_u64 {
        let shared = Arc::new(device.clone());
        let mut streams = Streams::start(shared, &spec, &config, grant()).unwrap();
        let (mut delivered, mut put, mut kept) = (0_u64, 0_u64, Vec::new());
        for number in 0..60_u8 {
            for (port, udp) in [(0, 5000), (0, 5001), (1, 5000), (1, 5001)] {
                let payload = [number; 40];
                device.with(|card, _| card.put(port, datagram(port, 7, udp, &payload)));
                put += 1;
            }
            device.advance(Ns(700));
            while let Some(Announced { stream, buffer }) = streams.poll() {
                for payload in buffer.payloads() {
                    let data = payload.unwrap().data;
                    let len = if stream == 1 { 64 } else { 40 };
                    assert_eq!(data.len(), len);
                    assert!(data[..40].iter().all(|&byte| byte == data[0]));
                    delivered += 1;
                }
                kept.push(buffer);
            }
            if kept.len() > 2 {
                // Not in their order.
                kept.swap_remove(0);
            }
        }
        kept.clear();
        device.advance(Ns(100 * round));
        streams.sync_counters();
        assert_eq!(streams.refused(), 0);
        let balance = streams.stop().unwrap();
        let ends = delivered + balance.delivered + balance.dropped_total();
        assert_eq!(balance.from_wire, ends, "{balance}");
        assert!(balance.from_wire <= put && delivered > 0, "{balance}");
        let left = device.with(|_, memory| (memory.trespasses, memory.mapped()));
        assert_eq!(left, (0, 0));
        // Frames that have not arrived yet find no receiver.
        device.advance(Ns(100_000));
    }
}
