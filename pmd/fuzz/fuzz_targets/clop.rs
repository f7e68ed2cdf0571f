//! CLOP with forged, repeated and lost events.
//!
//! A buffer that the reader holds never changes; whatever was announced, a list whose buffers have
//! all been returned accepts payloads again.
#![no_main]

use std::collections::VecDeque;

use libfuzzer_sys::fuzz_target;
use pollux_mempool::region::PageSize;
use pollux_mempool::time::{Ns, WireTime};
use pollux_pmd::event::{
    Clop, ClopBuffer, ClopConfig, ClopReader, EventKind, EventQueue, EventRecord, Framing,
    PayloadInfo, RegionOptions,
};
use pollux_pmd::{Clock, ManualClock};
use pollux_pmd_fuzz::Input;

const STREAM: u16 = 5;
const MEMORY: RegionOptions = RegionOptions {
    pages: PageSize::Kib4,
    numa_node: None,
    lock: pollux_mempool::region::Lock::Try,
    low_addresses: false,
};

/// Buffers that the reader holds, each with its content at the announcement.
#[derive(Default)]
struct Held(VecDeque<(ClopBuffer, Vec<u8>)>);

impl Held {
    fn accept(&mut self, reader: &mut ClopReader, event: &EventRecord) {
        let Ok(buffer) = reader.accept(event) else {
            return;
        };
        let bytes = buffer.bytes().to_vec();
        // The payloads lie in the buffer, whatever number of bytes a forged event announces.
        let payloads = buffer.payloads().map_while(Result::ok);
        assert!(payloads.map(|payload| payload.data.len()).sum::<usize>() <= bytes.len());
        self.0.push_back((buffer, bytes));
    }

    fn check(&self) {
        for (buffer, bytes) in &self.0 {
            assert_eq!(
                buffer.bytes(),
                bytes,
                "the writer wrote into a reader's buffer"
            );
        }
    }
}

fn forged(input: &mut Input, like: &EventRecord) -> EventRecord {
    let mut event = *like;
    match input.u8() % 5 {
        0 => event.index = input.u8().into(),
        1 => event.sequence = input.u8().into(),
        2 => event.length = input.u32(),
        3 => event.kind = EventKind(input.u8()),
        _ => event.payload.fill(input.u8()),
    }
    event
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let clock = ManualClock::new();
    let config = ClopConfig {
        stream: STREAM,
        buffers: 1 + usize::from(input.u8() % 4),
        size: 64 * (1 + usize::from(input.u8() % 4)),
        timeout: Ns(1000),
        framing: match input.u8() {
            0..128 => Framing::Records,
            n => Framing::Bare {
                stride: 1 + usize::from(n % 64),
            },
        },
        memory: MEMORY,
    };
    let (mut events, mut announced) = EventQueue::new(4, &MEMORY).expect("a queue").split();
    let (mut writer, mut reader) = Clop::new(&config, &clock).expect("a list").split();
    let mut held = Held::default();
    let mut last = EventRecord::default();
    while !input.is_empty() {
        match input.u8() % 7 {
            0 | 1 => {
                let n = input.u8().into();
                let info = PayloadInfo {
                    arrival: clock.now(),
                    source_port: 9,
                    wire: Some(WireTime(input.u64())).filter(|wire| wire.0 % 2 == 0),
                };
                let _ = writer.append(&mut events, &info, input.bytes(n));
            }
            2 => {
                clock.advance(Ns(u64::from(input.u16())));
                writer.poll(&mut events, clock.now());
            }
            3 => {
                if let Some(event) = announced.poll() {
                    held.accept(&mut reader, &event);
                    last = event;
                }
            }
            4 => held.accept(&mut reader, &forged(&mut input, &last)),
            5 => drop(held.0.pop_front()),
            _ => drop(held.0.pop_back()),
        }
        held.check();
    }
    // All announced buffers are returned.
    for _ in 0..=2 * config.buffers {
        let _ = writer.flush(&mut events);
        while let Some(event) = announced.poll() {
            held.accept(&mut reader, &event);
        }
        held.0.clear();
    }
    let info = PayloadInfo {
        arrival: clock.now(),
        source_port: 9,
        wire: None,
    };
    assert_eq!(writer.append(&mut events, &info, b""), Ok(()));
});
