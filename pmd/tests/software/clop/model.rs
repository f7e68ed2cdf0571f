//! CLOP behaves like a model: a FIFO of payloads.

use std::collections::VecDeque;

use pollux_mempool::time::WireTime;
use pollux_pmd::event::{ClopBuffer, Framing, PayloadInfo, Refused};
use proptest::prelude::*;

use super::{Bench, TIMEOUT, bench};

#[derive(Clone, Debug)]
enum Step {
    Append(usize, Option<u64>),
    Pass(u64),
    Accept,
    Release(usize),
    Flush,
}

fn step() -> impl Strategy<Value = Step> {
    let length = prop_oneof![4 => 0_usize..60, 1 => Just(0), 1 => 100_usize..260];
    let wire = proptest::option::of(prop_oneof![9 => 0_u64..1 << 20, 1 => any::<u64>()]);
    prop_oneof![
        6 => (length, wire).prop_map(|(length, wire)| Step::Append(length, wire)),
        2 => (0_u64..2 * TIMEOUT.0).prop_map(Step::Pass),
        3 => Just(Step::Accept),
        3 => any::<usize>().prop_map(Step::Release),
        1 => Just(Step::Flush),
    ]
}

/// Expected content of the next buffers, and buffers that the reader holds.
#[derive(Default)]
struct Model {
    /// Written and not yet accepted: sequence number, time stamp, bytes.
    waiting: VecDeque<(u32, Option<WireTime>, Vec<u8>)>,
    held: Vec<(ClopBuffer, Vec<u8>)>,
    offered: u32,
    refused: u32,
    arrived: u32,
    announced: u32,
}

impl Model {
    /// Accepts a buffer and compares its payloads with the expected ones.
    fn accept(&mut self, bench: &mut Bench, stride: Option<usize>) -> bool {
        let Some(buffer) = bench.accept() else {
            return false;
        };
        let event = *buffer.event();
        assert!(event.payloads > 0);
        let mut payloads = 0;
        for payload in buffer.payloads() {
            let payload = payload.unwrap();
            let (sequence, wire, mut bytes) = self.waiting.pop_front().unwrap();
            match (payload.record, stride) {
                (Some(record), None) => {
                    assert_eq!((record.sequence, record.wire), (sequence, wire));
                }
                (None, Some(stride)) => bytes.resize(stride, 0),
                (record, stride) => panic!("{record:?} with stride {stride:?}"),
            }
            assert_eq!(payload.data, bytes);
            if payloads == 0 {
                assert_eq!(event.first, sequence);
            }
            payloads += 1;
            if payloads == event.payloads {
                assert_eq!(event.last, sequence);
            }
        }
        assert_eq!(payloads, event.payloads);
        self.arrived += payloads;
        self.announced += 1;
        let copy = buffer.bytes().to_vec();
        self.held.push((buffer, copy));
        true
    }
}

proptest! {
    /// Every accepted payload arrives once, in order and byte for byte; the others were refused for
    /// a valid reason; buffers of the reader do not change.
    #[test]
    fn behaves_like_a_fifo_of_payloads(
        buffers in 1_usize..5,
        lines in 1_usize..5,
        stride in proptest::option::of(1_usize..64),
        steps in proptest::collection::vec(step(), 1..200),
    ) {
        let (size, records) = (lines * 64, 2);
        let framing = stride.map_or(Framing::Records, |stride| Framing::Bare { stride });
        let mut bench = bench(buffers, size, framing, records);
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Append(length, wire) => {
                    let bytes: Vec<_> = (0..length).map(|k| (k as u32 ^ model.offered) as u8).collect();
                    let wire = wire.map(WireTime);
                    let info = PayloadInfo { wire, ..bench.info() };
                    let outcome = bench.writer.append(&mut bench.events, &info, &bytes);
                    let longest = stride.unwrap_or(size - 16);
                    prop_assert_eq!(matches!(outcome, Err(Refused::Oversize { .. })), length > longest);
                    match outcome {
                        Ok(()) => model.waiting.push_back((model.offered, wire, bytes)),
                        Err(refused) => {
                            model.refused += 1;
                            let mut queued = 0;
                            if !matches!(refused, Refused::Oversize { .. }) {
                                while model.accept(&mut bench, stride) {
                                    queued += 1;
                                }
                            }
                            match refused {
                                Refused::ClopFull => {
                                    let in_turn = model.announced % buffers as u32;
                                    prop_assert!(model.held.iter().any(|(b, _)| b.event().buffer == in_turn));
                                }
                                Refused::EventsFull => prop_assert_eq!(queued, records),
                                _ => {}
                            }
                        }
                    }
                    model.offered += 1;
                }
                Step::Pass(ns) => {
                    bench.pass(ns);
                    if ns >= TIMEOUT.0 {
                        // All earlier payloads have reached the time-out; a full event queue delays
                        // the announcement by one poll.
                        while model.accept(&mut bench, stride) {}
                        bench.pass(0);
                        while model.accept(&mut bench, stride) {}
                        prop_assert!(model.waiting.is_empty());
                    }
                }
                Step::Accept => _ = model.accept(&mut bench, stride),
                Step::Release(which) => if !model.held.is_empty() {
                    let (buffer, copy) = model.held.swap_remove(which % model.held.len());
                    prop_assert_eq!(buffer.bytes(), copy);
                },
                Step::Flush => _ = bench.writer.flush(&mut bench.events),
            }
        }
        while !bench.writer.flush(&mut bench.events) {
            prop_assert!(model.accept(&mut bench, stride));
        }
        while model.accept(&mut bench, stride) {}
        prop_assert!(model.waiting.is_empty());
        prop_assert_eq!(model.offered, model.arrived + model.refused);
        for (buffer, copy) in model.held {
            prop_assert_eq!(buffer.bytes(), copy);
        }
    }
}
