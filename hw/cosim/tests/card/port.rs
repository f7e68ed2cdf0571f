//! A simulated card as a port with a peer: each receives the other's frames, both ways.

use pollux_card_model::{SimulatedCard, SoftCard};
use pollux_cosim::CosimDevice;
use pollux_cosim::port::{self, SimulatedTime};
use pollux_mempool::region::PageSize;
use pollux_mempool::{Burst, Mempool, PoolCache, PoolConfig};
use pollux_pmd::{Balance, Clock, MemoryGrant, Port, PortConfig, RxQueue, StartedPort};

/// Frames sent at a time, with all lengths from a header on.
const BURST: usize = 32;
const ROUNDS: usize = 20;

fn frame(n: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5];
    frame.extend((14..14 + 37 * n % 1400).map(|i| (i * 3 + n) as u8));
    frame
}

fn received(rx: &mut RxQueue, cache: &mut PoolCache, time: &SimulatedTime) -> Vec<Vec<u8>> {
    let (mut all, mut burst) = (Vec::new(), Burst::<BURST>::new());
    rx.rx(cache, &mut burst);
    for mbuf in burst.iter() {
        // A frame arrives by the wire before the card can report it.
        let waited = time.now().0.checked_sub(mbuf.arrival().0);
        let least = if mbuf.queue() == 0 { 50 } else { 0 };
        assert!(waited.is_some_and(|ns| ns >= least && ns < 1_000_000));
        let mut bytes = vec![0; mbuf.total_len()];
        mbuf.copy_to(0, &mut bytes);
        all.push(bytes);
    }
    cache.free_burst(&mut burst);
    all
}

#[test]
fn card_and_peer_hear_each_other() {
    exchange(SoftCard::new(), "card-sim");
}

#[test]
fn a_virtual_function_and_its_peer_hear_each_other() {
    exchange(SoftCard::new(), "card-sim:function=vf1");
}

/// The same on the RTL, with both kinds of host.
#[cfg(has_verilator)]
mod verilated {
    use pollux_cosim::pcie::Behaviour;
    use pollux_cosim::verilated::VerilatedCard;

    use super::exchange;

    #[test]
    fn card_and_peer_hear_each_other() {
        exchange(VerilatedCard::new(1, Behaviour::prompt()), "card-sim");
    }

    #[test]
    fn a_virtual_function_and_its_peer_hear_each_other() {
        for behaviour in [Behaviour::prompt(), Behaviour::adversarial()] {
            exchange(VerilatedCard::new(2, behaviour), "card-sim:function=vf1");
        }
    }
}

#[test]
fn functions_are_pf_and_vf1_to_vf7() {
    let (device, time) = (CosimDevice::new(SoftCard::new()), SimulatedTime::default());
    for spec in ["function=vf8", "function=vf0", "function=1", "function="] {
        let spec = format!("card-sim:{spec}").parse().expect("a spec");
        // SAFETY: the card is simulated, and writes into the memory mapped for it.
        let grant = unsafe { MemoryGrant::new() };
        let error = port::open(&device, &spec, &time, grant)
            .err()
            .expect("an error");
        assert!(error.to_string().contains("vf1 to vf7"), "{error}");
    }
}

/// Frames of all lengths from a port to its peer and back.
fn exchange<C: SimulatedCard>(card: C, spec: &str) {
    let pool = Mempool::new(PoolConfig {
        buffers: 1024,
        pages: PageSize::Kib4,
        ..PoolConfig::default()
    });
    let pool = pool.expect("a pool");
    let (device, time) = (CosimDevice::new(card), SimulatedTime::default());
    let name = spec;
    let spec = spec.parse().expect("a spec");
    // SAFETY: the card is simulated, and writes into the memory mapped for it.
    let grant = unsafe { MemoryGrant::new() };
    let driver = port::open(&device, &spec, &time, grant).expect("a card");
    let config = PortConfig {
        rx_queues: 2,
        tx_queues: 2,
        ..PortConfig::new(pool.clone())
    };
    let port = Port::new(name, driver).configure(config);
    let mut started = port.expect("two queues").start().expect("a start");
    let mut cache = pool.cache(64).expect("a cache");

    let mut heard = [const { Vec::new() }; 2];
    let mut sent = Vec::new();
    for round in 0..ROUNDS {
        let frames: Vec<_> = (0..BURST).map(|n| frame(round * BURST + n)).collect();
        for tx in &mut started.tx {
            let mut burst = Burst::<BURST>::new();
            for frame in &frames {
                drop(burst.push(cache.alloc_from(frame).expect("a buffer")));
            }
            assert_eq!(tx.tx(&mut cache, &mut burst), BURST);
        }
        sent.extend(frames);
        // Queue 0 advances time.
        for _ in 0..1_000_000 {
            for (heard, rx) in heard.iter_mut().zip(&mut started.rx) {
                heard.extend(received(rx, &mut cache, &time));
            }
            if heard.iter().all(|heard| heard.len() >= sent.len()) {
                break;
            }
        }
    }
    for (queue, heard) in heard.iter().enumerate() {
        assert_eq!(heard.len(), sent.len(), "queue {queue}");
        for (heard, sent) in heard.iter().zip(&sent) {
            // Padded on the way.
            assert!(heard.starts_with(sent) && heard.len() == sent.len().max(60));
        }
    }
    assert!(time.now().0 > 0);

    let StartedPort { port, rx, tx } = started;
    let tallies: Vec<_> = rx.iter().map(RxQueue::tally).collect();
    drop(cache);
    port.stop(rx, tx).expect("a stop");
    let mut balance = Balance::default();
    for tally in tallies {
        balance.add(&tally.balance());
    }
    balance.delivered += 2 * sent.len() as u64;
    assert!(balance.is_balanced(), "{balance}");
    assert_eq!(balance.dropped_total(), 0, "{balance}");
    assert_eq!(pool.available(), pool.buffers());
}
