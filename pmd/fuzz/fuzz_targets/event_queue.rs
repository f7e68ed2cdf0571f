//! An event queue between two sides, either of which may be a faulty device.
//!
//! While both are correct, the queue is a bounded FIFO. A faulty side can make the other side see
//! wrong events, no free records, or free records that do not exist; every loop still ends.
#![no_main]

use std::collections::VecDeque;

use libfuzzer_sys::fuzz_target;
use pollux_mempool::region::PageSize;
use pollux_mempool::time::WireTime;
use pollux_pmd::event::{EventFlags, EventQueue, EventRecord, RegionOptions};
use pollux_pmd_fuzz::Input;

const RECORDS: usize = 8;

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let memory = RegionOptions {
        pages: PageSize::Kib4,
        ..RegionOptions::default()
    };
    let queue = EventQueue::new(RECORDS, &memory).expect("memory for a small queue");
    let (mut producer, mut consumer) = queue.split();
    // Content of the queue, while both sides are correct.
    let mut model = Some(VecDeque::new());
    while !input.is_empty() {
        match input.u8() % 6 {
            0 => {
                let record = EventRecord {
                    wire: WireTime(input.u64()),
                    sequence: input.u32(),
                    flags: EventFlags(input.u8() & 0x7f),
                    ..EventRecord::default()
                };
                let room = producer.has_room();
                assert_eq!(producer.push(&record).is_ok(), room);
                if let Some(model) = model.as_mut().filter(|_| room) {
                    model.push_back(record);
                    assert!(model.len() <= RECORDS);
                }
            }
            1 => {
                let polled = consumer.poll();
                if let Some(model) = &mut model {
                    assert_eq!(polled, model.pop_front());
                }
                assert_eq!(polled.map_or(0, |record| record.flags.0 & 0x80), 0);
            }
            2 => {
                let mut out = [EventRecord::default(); 2 * RECORDS];
                let n = consumer.poll_burst(&mut out);
                assert!(n <= RECORDS);
                if let Some(model) = &mut model {
                    assert_eq!(out[..n], *model.drain(..).collect::<Vec<_>>());
                }
            }
            3 => {
                let pushed = std::iter::from_fn(|| producer.push(&EventRecord::default()).ok());
                let n = pushed.count();
                // Twice: records that were released too early count once they are there.
                assert!(n <= 2 * RECORDS);
                if let Some(model) = &mut model {
                    model.extend(vec![EventRecord::default(); n]);
                    assert!(model.len() + RECORDS / 4 >= RECORDS && model.len() <= RECORDS);
                }
            }
            4 => {
                let at = input.u64();
                producer.forge(at, std::array::from_fn(|_| input.u64()));
                model = None;
            }
            _ => {
                let at = if input.u8() % 2 == 0 {
                    input.u64()
                } else {
                    input.u8().into()
                };
                consumer.forge_release(at);
                model = None;
            }
        }
    }
});
