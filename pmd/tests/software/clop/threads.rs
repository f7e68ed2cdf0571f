//! CLOP between two threads.

use pollux_mempool::time::Ns;
use pollux_pmd::event::{ClopBuffer, Framing, PayloadInfo};
use pollux_pmd::{Cause, Clock};

use super::{Bench, bench};

/// Bytes of payload `n`: its number and bytes derived from it.
fn payload(n: u32, out: &mut Vec<u8>) {
    let mix = n.wrapping_mul(0x9e37_79b9);
    out.clear();
    out.extend(n.to_le_bytes());
    out.extend((0..mix >> 24).map(|k| (mix >> (k % 17)) as u8));
}

#[test]
fn two_threads_lose_and_tear_nothing() {
    const PAYLOADS: u32 = 60_000;
    let Bench {
        clock,
        mut events,
        mut announced,
        mut writer,
        mut reader,
    } = bench(4, 1024, Framing::Records, 4);
    let writing = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut refusals = 0;
        for n in 0..PAYLOADS {
            payload(n, &mut bytes);
            clock.advance(Ns(10));
            let info = PayloadInfo {
                arrival: clock.now(),
                source_port: n as u16,
                wire: None,
            };
            while let Err(refused) = writer.append(&mut events, &info, &bytes) {
                assert_eq!(refused.cause(), Cause::RingFull);
                refusals += 1;
                std::thread::yield_now();
            }
            writer.poll(&mut events, clock.now());
        }
        while !writer.flush(&mut events) {
            std::thread::yield_now();
        }
        refusals
    });
    let (mut next, mut offered, mut expected) = (0, 0, Vec::new());
    let mut held: Vec<ClopBuffer> = Vec::new();
    while next < PAYLOADS {
        let Some(event) = announced.poll() else {
            held.pop();
            std::thread::yield_now();
            continue;
        };
        held.push(reader.accept(&event).unwrap());
        // Up to three are held for a while, read only when they are dropped, and dropped in another
        // order.
        if let Some(buffer) = held.last() {
            for found in buffer.payloads() {
                let found = found.unwrap();
                payload(next, &mut expected);
                assert_eq!(found.data, expected);
                assert_eq!(found.record.unwrap().source_port, next as u16);
                next += 1;
            }
            offered = buffer.event().last + 1;
        }
        if held.len() > 2 {
            held.swap_remove(next as usize % 3);
        }
    }
    assert_eq!(announced.poll(), None);
    assert_eq!(
        writing.join().unwrap() + PAYLOADS,
        offered,
        "gaps are refusals"
    );
}
