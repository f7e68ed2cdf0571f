//! Translation: pages that do not follow each other, chunks that wait for a page, unmapping, rights.

use std::sync::Arc;

use pollux_card_model::layouts::{TLB_FAULT_ADDRESS, TLB_FAULT_FUNCTION, TLB_FAULT_REASON};
use pollux_card_model::registers::{clop, functions, tlb};
use pollux_card_model::{Register, SimulatedCard};

use pollux_mempool::region::PageSize;
use pollux_mempool::time::Ns;
use pollux_pmd::bus::{Bus, Device};
use pollux_pmd::drivers::card::{Form, StreamConfig, Streams, StreamsConfig};
use pollux_pmd::event::{ClopConfig, RegionOptions};

use super::lists::{FAULTS_QUEUE, NEVER, list, one_stream, put};
use super::support::{Make, US, end, settle};
use crate::CosimDevice;
use crate::device::grant;
use crate::rig::{LISTS_AT, Page, Rig, datagram};

const KIB4: u64 = 4 << 10;

fn tlb_count<C: SimulatedCard>(rig: &Rig<C>, counter: Register) -> u64 {
    rig.read64(&tlb::THIS, 0, counter, 0)
}

/// Events of faults, from now on.
fn report_faults<C: SimulatedCard>(rig: &Rig<C>) {
    let control = (FAULTS_QUEUE as u32) << 8 | 1;
    rig.write(&functions::THIS, 0, functions::FAULT_CTRL, 0, control);
    rig.begin_queue(FAULTS_QUEUE);
}

fn fault<C: SimulatedCard>(rig: &mut Rig<C>) -> Option<(u64, u32, u32)> {
    fault_in(rig, FAULTS_QUEUE)
}

/// (address, function, reason) of the next fault in a queue.
pub(super) fn fault_in<C: SimulatedCard>(
    rig: &mut Rig<C>,
    queue: usize,
) -> Option<(u64, u32, u32)> {
    let record = rig.event(queue)?;
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| record[at + i]));
    let address = u64::from(word(TLB_FAULT_ADDRESS + 4)) << 32 | u64::from(word(TLB_FAULT_ADDRESS));
    Some((address, word(TLB_FAULT_FUNCTION), word(TLB_FAULT_REASON)))
}

/// A list in pages of 4 KiB in reverse order, one of 64 KiB and one of 2 MiB: payloads of all lengths
/// lie across their ends.
pub fn a_list_lies_in_pages_that_do_not_follow_each_other<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = one_stream(make, 12 << 10, 1000);
    let lists = LISTS_AT as u64;
    // The lowest entry counts: what the others leave.
    rig.enter(60, Page::new(0, 10 << 20, 21));
    for n in 0..16 {
        rig.enter(
            n as usize,
            Page::new(lists + n * KIB4, (9 << 20) - n * KIB4, 12),
        );
    }
    rig.enter(20, Page::new(lists + (64 << 10), 14 << 20, 16));
    let mut found = 0;
    // The list is 192 KiB: twice around.
    for n in 0..60_usize {
        let payload: Vec<u8> = (0..100 + n * 149).map(|i| (i * 7 + n) as u8).collect();
        rig.put(0, datagram(0, 7, 5000, &payload));
        let all = settle(&mut rig);
        assert_eq!(all.len(), 1, "payload {n}");
        assert!(all[0].bytes == payload, "payload {n}");
        found += 1;
    }
    assert_eq!(rig.outcomes(0), [found, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(tlb_count(&rig, tlb::FAULTS), 0);
    end(rig);
}

/// A chunk without a page waits, with those behind it, and is reported once; with the page all goes on.
pub fn a_missing_page_holds_its_payload<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = one_stream(make, 12 << 10, NEVER);
    let lists = LISTS_AT as u64;
    report_faults(&rig);
    // 2 ms.
    rig.write(&tlb::THIS, 0, tlb::TIMEOUT, 0, 500_000);
    rig.leave(0);
    rig.enter(1, Page::new(lists, 9 << 20, 12));
    let payload: Vec<u8> = (0..9000_usize).map(|i| (i * 3) as u8).collect();
    rig.put(0, datagram(0, 7, 5000, &payload));
    for _ in 0..3 {
        rig.put(0, datagram(0, 7, 5000, &[5; 100]));
    }
    rig.advance(60 * US);
    let base = rig.read64(&clop::THIS, 0, clop::LIST_BASE, 0);
    for n in 1..3 {
        assert_eq!(rig.outcomes(0), [0; 8], "page {n}");
        assert_eq!(fault(&mut rig), Some((base + n * KIB4, 0, 0)));
        assert_eq!(fault(&mut rig), None, "reported twice");
        // Another page is not enough.
        rig.enter(9, Page::new(lists + (1 << 20), 10 << 20, 12));
        rig.advance(5 * US);
        rig.enter(
            1 + n as usize,
            Page::new(lists + n * KIB4, (8 << 20) + n * 2 * KIB4, 12),
        );
        rig.advance(20 * US);
    }
    let found = settle(&mut rig);
    assert_eq!(found.len(), 4);
    assert!(found[0].bytes == payload);
    assert_eq!(
        [tlb::MISSES, tlb::FAULTS].map(|one| tlb_count(&rig, one)),
        [2, 0]
    );
    end(rig);
}

/// What waits for too long is a fault, and the next payload goes on.
pub fn a_page_that_never_comes_costs_its_payload<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = one_stream(make, 4096, 1000);
    report_faults(&rig);
    // 100 us.
    rig.write(&tlb::THIS, 0, tlb::TIMEOUT, 0, 25_000);
    rig.leave(0);
    put(&rig, 1, 100);
    rig.advance(50 * US);
    assert_eq!(rig.outcomes(0), [0; 8]);
    rig.advance(100 * US);
    assert_eq!(rig.outcomes(0), [0, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(
        [tlb::MISSES, tlb::FAULTS].map(|one| tlb_count(&rig, one)),
        [1, 1]
    );
    rig.enter(0, Page::new(0, 0, 24));
    put(&rig, 1, 100);
    let found = settle(&mut rig);
    assert_eq!((found.len(), found[0].sequence), (1, 1));
    assert!(fault(&mut rig).is_some() && fault(&mut rig).is_none());
    // A list that is restarted meanwhile.
    rig.leave(0);
    put(&rig, 1, 100);
    rig.write(&clop::THIS, 0, clop::LIST_CTRL, 0, 0);
    rig.write(&clop::THIS, 0, clop::LIST_CTRL, 0, 1);
    rig.enter(0, Page::new(0, 0, 24));
    rig.advance(20 * US);
    assert_eq!(rig.outcomes(0), [1, 0, 0, 0, 1, 1, 0, 0]);
    end(rig);
}

/// Under traffic: once the card says so, it writes nothing to pages that were taken away, and other
/// pages are written meanwhile.
pub fn a_page_is_unmapped_under_traffic<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = one_stream(make, 4096, 100);
    // The same payloads go to one half of the memory or the other.
    let halves = [0, 8 << 20].map(|at| Page::new(0, at, 23));
    rig.enter(0, halves[0]);
    let mut sent = 0;
    for round in 1..20_u32 {
        for _ in 0..6 {
            rig.put(0, datagram(0, 7, 5000, &[round as u8; 700]));
            sent += 1;
        }
        rig.advance(u64::from(round) * US / 5);
        rig.leave(0);
        assert!(rig.unmap(round), "round {round}");
        let [old, new] = if round % 2 == 1 {
            halves
        } else {
            [halves[1], halves[0]]
        };
        let before = rig.page_of_lists(old);
        rig.enter(0, new);
        rig.advance(10 * US);
        assert!(
            rig.page_of_lists(old) == before,
            "round {round}: written after it was unmapped"
        );
        // Payloads of one buffer lie in both halves: they are not read.
        let _ = (rig.receive(), rig.flush());
    }
    let [placed, .., faults, _, _, _] = rig.outcomes(0);
    assert_eq!(placed + faults, sent);
    assert!(placed > 0);
    end(rig);
}

/// A payload that extends to where there is no page; a page of another function, of another key, and
/// one that may not be written.
pub fn a_page_is_for_whom_it_is_and_ends_where_it_ends<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = one_stream(make, 4096, 100);
    report_faults(&rig);
    let base = rig.read64(&clop::THIS, 0, clop::LIST_BASE, 0);
    let mode = list(&rig, clop::LIST_MODE);
    let page = Page::new(0, 0, 24);
    // The page ends 64 bytes after the first buffer's start.
    let last = (base | 0xff_ffff) + 1 - 64;
    let sealed = Page {
        writable: false,
        ..page
    };
    let cases = [
        (last, page, 0, Some((last + 64, 0, 0))),
        // Function 5 would be told, and has no events.
        (base, page, 5, None),
        (base, Page { key: 7, ..page }, 0, Some((base, 0, 2))),
        (base, sealed, 0, Some((base, 0, 2))),
        (base, Page { func: 5, ..page }, 0, Some((base, 0, 0))),
    ];
    for (base, page, func, expected) in cases {
        rig.write(&clop::THIS, 0, clop::LIST_CTRL, 0, 0);
        rig.enter(0, page);
        rig.write64(&clop::THIS, 0, clop::LIST_BASE, 0, base);
        rig.write(&clop::THIS, 0, clop::LIST_MODE, 0, mode | func << 4);
        rig.write(&clop::THIS, 0, clop::LIST_CTRL, 0, 1);
        put(&rig, 1, 100);
        assert_eq!(fault(&mut rig), expected);
    }
    assert_eq!(rig.outcomes(0), [0, 0, 0, 0, 5, 0, 0, 0]);
    end(rig);
}

/// Bits of an entry's control: valid; refused.
const STATE: u32 = 1 | 1 << 3;
const VALID: u32 = 1;
const REFUSED: u32 = 1 << 3;

fn state<C: SimulatedCard>(rig: &Rig<C>) -> u32 {
    rig.read(&tlb::THIS, 0, tlb::ENTRY_CTRL, 0) & STATE
}

/// A page that begins at no multiple of its size, in one address or in both, or whose size is none, is
/// refused, and its entry says so: nothing is written where it would be if its addresses were cut off.
pub fn a_misaligned_page_translates_nothing<C: SimulatedCard>(make: Make<'_, C>) {
    const MIB: u64 = 1 << 20;
    let mut rig = one_stream(make, 4096, 100);
    report_faults(&rig);
    let lists = LISTS_AT as u64;
    let base = rig.read64(&clop::THIS, 0, clop::LIST_BASE, 0);
    let refused = [
        // Bus address, 4 KiB to half a page too high.
        Page::new(0, KIB4, 21),
        Page::new(0, MIB, 21),
        Page::new(0, 8 * MIB, 24),
        Page::new(lists, lists + 9 * KIB4, 16),
        // Virtual address.
        Page::new(KIB4, 0, 21),
        Page::new(MIB, 2 * MIB, 21),
        Page::new(8 * MIB, 0, 24),
        // Both.
        Page::new(MIB, MIB, 21),
        Page::new(lists + KIB4, lists + KIB4, 13),
        // Less than the smallest page.
        Page::new(lists, lists | 64, 12),
        Page::new(lists | 1, lists, 12),
        Page::new(lists | 2048, lists | 2048, 21),
        // No sizes.
        Page::new(lists, lists, 0),
        Page::new(lists, lists, 11),
        Page::new(0, 0, 31),
    ];
    for page in refused {
        rig.write(&clop::THIS, 0, clop::LIST_CTRL, 0, 0);
        rig.enter(0, page);
        rig.write(&clop::THIS, 0, clop::LIST_CTRL, 0, 1);
        assert_eq!(state(&rig), REFUSED, "{page:?}");
        put(&rig, 1, 100);
        assert_eq!(fault(&mut rig), Some((base, 0, 0)), "{page:?}");
    }
    let faults = refused.len() as u64;
    assert_eq!(rig.outcomes(0), [0, 0, 0, 0, faults, 0, 0, 0]);
    let written = rig.memory_at(LISTS_AT, (1 << 24) - LISTS_AT);
    assert!(written.iter().all(|&byte| byte == 0));
    rig.leave(0);
    assert_eq!(state(&rig), 0);
    // The smallest page, and the largest that is in the memory.
    for page in [Page::new(lists, lists, 12), Page::new(0, 0, 24)] {
        rig.enter(0, page);
        assert_eq!(state(&rig), VALID);
        put(&rig, 1, 100);
        assert_eq!(settle(&mut rig).len(), 1);
    }
    end(rig);
}

/// A write of any part of an address makes the entry invalid, until it is made valid again.
pub fn a_page_ends_where_its_address_is_written<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = one_stream(make, 4096, 100);
    let control = rig.read(&tlb::THIS, 0, tlb::ENTRY_CTRL, 0);
    let mut faults = 0;
    for register in [tlb::ENTRY_VIRTUAL, tlb::ENTRY_BUS] {
        for (byte, width) in [(0, 4), (4, 4), (1, 1), (7, 1)] {
            assert_eq!(state(&rig), VALID);
            let at = tlb::THIS.at + register.at + byte;
            if width == 4 {
                rig.bus.write32(at, rig.bus.read32(at));
            } else {
                rig.bus.write8(at, rig.bus.read8(at));
            }
            assert_eq!(state(&rig), 0, "{} + {byte}", register.name);
            put(&rig, 1, 100);
            faults += 1;
            assert_eq!(rig.outcomes(0), [faults - 1, 0, 0, 0, faults, 0, 0, 0]);
            rig.write(&tlb::THIS, 0, tlb::ENTRY_CTRL, 0, control);
            put(&rig, 1, 100);
            assert_eq!(settle(&mut rig).len(), 1);
        }
    }
    end(rig);
}

/// Translations already made complete; later ones fault; and the list continues.
pub fn an_entry_may_be_taken_away_at_any_time<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = one_stream(make, 4096, 100);
    let entry = rig.read(&tlb::THIS, 0, tlb::ENTRY_CTRL, 0);
    let mut found = 0;
    for round in 0..20 {
        for _ in 0..10 {
            rig.put(0, datagram(0, 7, 5000, &[9; 300]));
        }
        rig.advance(round * US / 4);
        rig.write(&tlb::THIS, 0, tlb::ENTRY_CTRL, 0, entry & !1);
        rig.advance(US);
        rig.write(&tlb::THIS, 0, tlb::ENTRY_CTRL, 0, entry);
        found += settle(&mut rig).len() as u64;
    }
    let [placed, .., faults, _, _, _] = rig.outcomes(0);
    assert_eq!((placed, placed + faults), (found, 200));
    assert!(faults > 0 && placed > 0, "{faults} of 200");
    end(rig);
}

/// The driver's list in pages of 4 KiB in reverse order, more than the card has entries: no payload is
/// lost while the driver enters them.
pub fn a_list_of_the_driver_lies_in_pages_apart<C: SimulatedCard>(make: Make<'_, C>) {
    let device = CosimDevice::scattered(make());
    let misses = assert_driver_enters_pages(&device);
    assert!(misses > 20, "{misses}");
}

/// The same by the driver of a virtual function, which has fewer entries, and gets the reports of its pages.
pub fn a_list_of_a_virtual_function_lies_in_pages_apart<C: SimulatedCard>(make: Make<'_, C>) {
    let device = CosimDevice::scattered(make());
    let bus = device.bar(0, 128 << 10).unwrap();
    for (register, owners) in [
        (functions::PORTS, 0x1),
        (functions::QUEUE_OWNERS, 0x1111_1111),
        (functions::PAGES, 0x10),
    ] {
        bus.write32(functions::THIS.at + register.at, owners);
    }
    // 200 us.
    bus.write32(tlb::THIS.at + tlb::TIMEOUT.at, 50_000);
    let misses = assert_driver_enters_pages(&device.function(1));
    assert!(misses > 40, "{misses}");
}

/// The driver of a function receives all into more pages than it has entries; the number of its misses.
fn assert_driver_enters_pages<C: SimulatedCard>(device: &CosimDevice<C>) -> u64 {
    const PAYLOADS: usize = 90;
    let memory = RegionOptions {
        pages: PageSize::Kib4,
        ..RegionOptions::default()
    };
    let stream = StreamConfig {
        port: 0,
        udp: 5000,
        form: Form::Payload,
        clop: ClopConfig {
            buffers: 32,
            size: 32 << 10,
            timeout: Ns(5_000),
            memory,
            ..ClopConfig::default()
        },
    };
    let config = StreamsConfig {
        streams: vec![stream],
        ..StreamsConfig::default()
    };
    let spec = "card-sim:mac=02:00:4c:4f:4c:00,ip=10.0.0.1+10.0.1.1,mtu=9000";
    let device_of_driver = Arc::new(device.clone());
    let streams = Streams::start(device_of_driver, &spec.parse().unwrap(), &config, grant());
    let mut streams = streams.unwrap();
    let payload = |n: usize| (0..8000).map(|i| (i * 3 + n) as u8).collect::<Vec<_>>();
    let mut delivered = 0;
    for n in 0..PAYLOADS {
        device.with(|card, _| card.put(0, datagram(0, 7, 5000, &payload(n))));
        for _ in 0..14 {
            device.advance(Ns(1_000));
            while let Some(announced) = streams.poll() {
                for one in announced.buffer.payloads() {
                    assert!(
                        one.unwrap().data == payload(delivered),
                        "payload {delivered}"
                    );
                    delivered += 1;
                }
            }
        }
    }
    assert_eq!(delivered, PAYLOADS);
    let bus = device.function(0).bar(0, 128 << 10).unwrap();
    let count = |counter: Register| bus.read32(tlb::THIS.at + counter.at).into();
    assert_eq!((count(tlb::FAULTS), streams.refused()), (0_u64, 0));
    let misses = count(tlb::MISSES);
    let balance = streams.stop().unwrap();
    assert_eq!(
        (balance.from_wire, balance.dropped_total()),
        (PAYLOADS as u64, 0)
    );
    assert_eq!(device.with(|_, memory| memory.trespasses), 0);
    misses
}
