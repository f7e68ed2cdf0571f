//! AF_PACKET receive ring with arbitrary headers.
//!
//! Nothing outside the slot is read, each slot returns to the kernel, and each frame is counted.
#![no_main]

use std::cell::RefCell;

use libc::tpacket2_hdr;
use libfuzzer_sys::fuzz_target;
use pollux_mempool::{Burst, Mempool};
use pollux_pmd::Tally;
use pollux_pmd::driver::Origin;
use pollux_pmd::drivers::af_packet::hostile::HostileRing;
use pollux_pmd_fuzz::{Input, assert_full, pool};

thread_local! {
    static POOL: Mempool = pool(64, 512);
    static RING: RefCell<HostileRing> = RefCell::new(
        HostileRing::new().expect("a packet socket: run as root, or with CAP_NET_RAW"),
    );
}

fn header(input: &mut Input) -> tpacket2_hdr {
    let (len, status) = (input.u32(), input.u32());
    // The interesting lengths are those that may fit.
    let len = if status & 1 == 0 { len & 0xfff } else { len };
    tpacket2_hdr {
        tp_status: status,
        tp_len: len,
        tp_snaplen: if status & 2 == 0 { len } else { input.u32() },
        tp_mac: input.u16() >> (status >> 28),
        tp_net: input.u16(),
        tp_sec: input.u32(),
        tp_nsec: input.u32(),
        tp_vlan_tci: input.u16(),
        tp_vlan_tpid: input.u16(),
        tp_padding: [0; 4],
    }
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    RING.with_borrow_mut(|ring| {
        POOL.with(|pool| {
            let mut cache = pool.cache(16).expect("a cache");
            let (mut origin, mut tally) = (Origin::new(0, 0), Tally::new());
            let mut burst = Burst::<48>::new();
            let (mut posted, mut delivered) = (0, 0);
            while !input.is_empty() {
                ring.post(&header(&mut input));
                posted += 1;
                if burst.is_full() || input.u8() % 4 == 0 {
                    cache.free_burst(&mut burst);
                }
                delivered += ring.rx(&mut cache, &mut burst.as_mut(), &mut origin, &mut tally);
                assert!(ring.is_drained());
                assert!(
                    burst
                        .iter()
                        .all(|mbuf| mbuf.total_len() <= HostileRing::LONGEST)
                );
            }
            let balance = tally.view().balance();
            assert_eq!(balance.from_wire, posted);
            assert_eq!(balance.dropped_total() + delivered as u64, posted);
            drop((burst, cache));
            assert_full(pool);
        });
    });
});
