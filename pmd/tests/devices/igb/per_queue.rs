//! Queues with settings of their own: rings, pools, NUMA nodes.

use super::alone::datagram;
use super::*;
use pollux_pmd::bus::{Bus, Device};
use pollux_pmd::driver::flow::FlowRule;
use pollux_pmd::driver::rss::{Rss, RssKey, RssTable};
use pollux_pmd::port::QueueConfig;

/// Length register of the ring of a receive queue, and bytes of a descriptor (82576, section 8.10).
const RDLEN: [usize; 2] = [0xc008, 0xc048];
const DESCRIPTOR: u32 = 16;

#[test]
fn each_queue_has_its_ring_and_its_pool() {
    let world = World::new();
    let (all, second) = (pool(), pollux_pmd_testkit::ports::pool(512, 4096));
    let config = PortConfig::new(all.clone())
        .rx_queues(2)
        .ring(64)
        .rx_queue(1, QueueConfig::new().ring(256).pool(second.clone()));
    let port = world.pf("").unwrap().configure(config).unwrap();
    let mut running = Running::start(port, all.clone());
    let registers = world.pf.bar(0, 0x10000).unwrap();
    let rings = RDLEN.map(|at| registers.read32(at) / DESCRIPTOR);
    assert_eq!(rings, [64, 256]);
    // The ring is never filled whole.
    assert_eq!(second.buffers() - second.available(), 255);
    for n in 0..64 {
        let frame = datagram(running.mac(), n, b"hello");
        world.nic.arrive(&frame);
    }
    let _ = running.port.link();
    let mut from = [0; 2];
    let mut burst = Burst::<32>::new();
    for (rx, (pool, seen)) in running
        .rx
        .iter_mut()
        .zip([&all, &second].into_iter().zip(&mut from))
    {
        let mut cache = pool.cache(64).unwrap();
        while rx.rx(&mut cache, &mut burst) > 0 {
            running.consumer.count_delivered(burst.len() as u64);
            *seen += burst.len();
            let rooms = burst.iter().map(|mbuf| mbuf.len() + mbuf.tailroom());
            let expected = pool.data_room();
            assert!({ rooms }.all(|room| room == expected));
            cache.free_burst(&mut burst);
        }
    }
    assert!(
        from[0] > 0 && from[1] > 0 && from[0] + from[1] == 64,
        "{from:?}"
    );
    running.stop();
    assert_eq!(second.available(), second.buffers());
}

#[test]
fn the_ring_of_a_queue_is_on_its_numa_node() {
    let world = World::new();
    // No machine has so many.
    let nowhere = QueueConfig::new().numa_node(1023);
    let config = PortConfig::new(pool()).tx_queue(0, nowhere);
    let port = world.pf("").unwrap().configure(config).unwrap();
    let error = port.start().err().unwrap().to_string();
    assert!(error.contains("1023"), "{error}");
}

/// The model asks the registers for each frame, so that it shares out as the NIC does.
#[test]
fn flows_go_where_key_and_table_say() {
    let split = |options: &str, config: PortConfig| {
        let world = World::new();
        let port = world.pf(options).unwrap().configure(config).unwrap();
        let mut running = Running::start(port, pool());
        for n in 0..64 {
            world.nic.arrive(&datagram(running.mac(), n, b"hello"));
        }
        let _ = running.port.link();
        let mut burst = Burst::<64>::new();
        let seen: Vec<_> = running
            .rx
            .iter_mut()
            .map(|rx| {
                while rx.rx(&mut running.cache, &mut burst) > 0 {}
                let flows: Vec<_> = burst
                    .iter()
                    .map(|mbuf| mbuf.data()[28..30].to_vec())
                    .collect();
                running.consumer.count_delivered(burst.len() as u64);
                running.cache.free_burst(&mut burst);
                flows
            })
            .collect();
        let Running {
            port,
            rx,
            tx,
            ledger,
            ..
        } = running;
        port.stop(rx, tx).unwrap();
        ledger.check().unwrap();
        seen
    };
    let two = || PortConfig::new(pool()).rx_queues(2).ring(128);
    let usual = split("", two());
    assert!(usual.iter().all(|flows| !flows.is_empty()));
    let all_to_one = split("", two().rss(Rss::new().table(RssTable::new(&[1]))));
    assert_eq!(all_to_one.iter().map(Vec::len).collect::<Vec<_>>(), [0, 64]);
    assert_eq!(split(",rss-table=1", two()), all_to_one);
    // The configuration takes the place of the spec.
    let zero = Rss::new().table(RssTable::new(&[0]));
    let ruled = split(",rss-table=1", two().rss(zero));
    assert_eq!(ruled.iter().map(Vec::len).collect::<Vec<_>>(), [64, 0]);
    let key: Vec<u8> = (1..=40).collect();
    let keyed = split("", two().rss(Rss::new().key(RssKey::new(&key))));
    assert!(keyed != usual && keyed.iter().map(Vec::len).sum::<usize>() == 64);
    let hex = RssKey::new(&key).to_string();
    assert_eq!(split(&format!(",rss-key={hex}"), two()), keyed);
}

#[test]
fn what_the_nic_cannot_share_out_is_refused() {
    let world = World::new();
    let refused = |options: &str, config: PortConfig| {
        let port = world.pf(options).unwrap().configure(config);
        port.err().unwrap().to_string()
    };
    let table =
        |queues: &[u16]| PortConfig::new(pool()).rss(Rss::new().table(RssTable::new(queues)));
    assert!(refused("", table(&[1])).contains("an RSS table with queue 1"));
    assert!(refused("", table(&[0, 0, 0])).contains("tables of 1 to 128"));
    assert!(refused(",vfs=1", table(&[0])).contains("no choice of how flows are shared out"));
    let one = || PortConfig::new(pool());
    assert!(refused(",rss-table=0+1", one()).contains("queues 0 to 0"));
    assert!(refused(",rss-key=00", one()).contains("keys of 40 bytes"));
    let rule = one().flow_rule(FlowRule::udp_port(5000, 0));
    assert!(refused("", rule).contains("flow rules requested, but the device offers none"));
}

#[test]
fn what_a_queue_cannot_have_is_refused() {
    let world = World::new();
    let refused = |config: PortConfig| {
        let port = world.pf("").unwrap().configure(config);
        port.err().unwrap().to_string()
    };
    let long = QueueConfig::new().ring(1 << 16);
    let error = refused(PortConfig::new(pool()).tx_queue(0, long));
    assert!(error.contains("a ring of 65536"), "{error}");
    let small = QueueConfig::new().pool(pollux_pmd_testkit::ports::pool(64, 512));
    let error = refused(PortConfig::new(pool()).rx_queue(0, small));
    assert!(error.contains("1024 bytes and more"), "{error}");
}
