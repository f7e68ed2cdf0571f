//! Sent frames arrive, byte for byte and once.

use std::net::Ipv4Addr;
use std::time::Instant;

use pollux_mempool::{Burst, Mempool, PoolConfig};
use pollux_pmd::net::{MacAddr, Responder};
use pollux_pmd::{Cause, PortConfig, Registry};
use pollux_pmd_testkit::netns::{IP_A, Namespace, payload, udp_frame};

use super::{TAP, tap};
use crate::common::{self, PATIENCE, Port};
use crate::interface;

fn both_ways(options: &str, frame_lens: &[usize]) {
    let Some((namespace, mut port)) = tap(options, 1, 1024) else {
        return;
    };
    let peer = namespace.peer(7000);
    let n = port.exchange(&peer, frame_lens);
    let balance = port.stop();
    assert_eq!((balance.from_wire, balance.delivered), (n, n));
    assert_eq!(balance.bytes, frame_lens.iter().sum::<usize>() as u64);
}

#[test]
fn standard_frames_cross_both_ways() {
    both_ways("", &[42, 43, 59, 60, 61, 64, 128, 511, 1000, 1513, 1514]);
}

#[test]
fn jumbo_frames_cross_both_ways_in_chains() {
    let lens = [60, 1514, 2048, 2049, 4096, 4097, 6144, 6145, 9013, 9014];
    both_ways(",mtu=9000", &lens);
    // the maximum length of a datagram
    both_ways(",mtu=65521", &[64, 9014, 65_534, 65_535]);
}

#[test]
fn a_sender_that_does_not_wait_is_accounted_for() {
    let Some((namespace, port)) = tap("", 2, 1024) else {
        return;
    };
    interface::a_flood_is_accounted_for(port, &namespace.peer(7000), |port| {
        port.dropped(Cause::KernelDrop)
    });
}

#[test]
fn pings_are_answered_by_the_responder() {
    let Some(namespace) = Namespace::new() else {
        return;
    };
    if std::process::Command::new("ping")
        .arg("-V")
        .output()
        .is_err()
    {
        println!("skipped: no `ping` program");
        return;
    }
    let mut port = Port::try_open(&namespace, "tap:pol0,up", 1, 256).unwrap();
    namespace.ip("address add 10.77.0.1/24 dev pol0");
    let mac = port.started.port.capabilities().mac.unwrap();
    let own: MacAddr = {
        let shown = namespace.ip("-o link show pol0");
        let at = shown.find("link/ether ").unwrap() + 11;
        shown[at..at + 17].parse().unwrap()
    };
    assert!(mac != own && mac.is_unicast() && mac.0[0] & 2 == 2);
    let responder = Responder::new(mac, Ipv4Addr::from(IP_A));
    let answered = std::thread::scope(|scope| {
        // the kernel has no neighbour entry: it must resolve the address by ARP first
        // One at a time: after the first answer, ping waits for others no longer than twice its
        // round-trip time.
        let ping = "ping -c 1 -W 10 -s 1400 10.77.0.2";
        let answered = |_: &u32| namespace.exec(ping).status.success();
        let ping = scope.spawn(move || (0..3).filter(answered).count());
        while !ping.is_finished() {
            let answer = |frame: common::Frame| {
                let mut out = [0; 2000];
                let len = responder.reply(&frame.bytes, &mut out)?;
                Some(out[..len].to_vec())
            };
            let answers: Vec<_> = port.poll().into_iter().filter_map(answer).collect();
            assert_eq!(port.send(&answers), answers.len());
        }
        ping.join().unwrap()
    });
    assert_eq!(answered, 3);
}

#[test]
fn queues_share_flows_out_and_all_can_send() {
    let Some((namespace, mut port)) = tap("", 3, 1024) else {
        return;
    };
    let mut per_queue = [0; 3];
    for flow in 0..40_u16 {
        let peer = namespace.peer(7000 + flow);
        for _ in 0..10 {
            peer.send(&[flow as u8; 30]).unwrap();
        }
        let frames = port.receive(10);
        assert_eq!(frames.len(), 10, "each frame once");
        let first = frames[0].queue;
        assert!(
            frames.iter().all(|frame| frame.queue == first),
            "a flow stays together"
        );
        per_queue[usize::from(first)] += 10;
    }
    assert!(per_queue.iter().all(|&n| n > 0), "{per_queue:?}");
    assert_eq!(port.stop().from_wire, 400);
}

/// Queues that only send take no frames away from those that receive.
#[test]
fn more_queues_send_than_receive() {
    let Some(namespace) = Namespace::new() else {
        return;
    };
    let pool = Mempool::new(PoolConfig {
        buffers: 256,
        ..PoolConfig::default()
    });
    let pool = pool.unwrap();
    let started = namespace.within(|| {
        let config = PortConfig {
            tx_queues: 3,
            ..PortConfig::new(pool.clone())
        };
        let port = Registry::builtin().open(TAP).unwrap();
        port.configure(config).unwrap().start().unwrap()
    });
    namespace.make_kernel_end("pol0");
    let (mut rx, mut tx) = (started.rx, started.tx);
    let (mut cache, mut burst) = (pool.cache(16).unwrap(), Burst::<32>::new());
    let peer = namespace.peer(7000);
    for (i, tx) in tx.iter_mut().enumerate() {
        let data = payload(100, i as u8);
        let frame = cache.alloc_from(&udp_frame(7000, &data)).unwrap();
        burst.push(frame).unwrap();
        assert_eq!(tx.tx(&mut cache, &mut burst), 1);
        let mut got = [0; 200];
        assert_eq!(peer.recv(&mut got).unwrap(), 100);
        assert_eq!(got[..100], data);
    }
    for flow in 0..20 {
        namespace
            .peer(8000 + flow)
            .send(b"to the one that receives")
            .unwrap();
    }
    let (mut n, began) = (0, Instant::now());
    while n < 20 && began.elapsed() < PATIENCE {
        n += rx[0].rx(&mut cache, &mut burst);
        cache.free_burst(&mut burst);
    }
    assert_eq!(n, 20);
    // A stopped port keeps its interface, and starts again with other queues.
    let port = started.port.stop(rx, tx).unwrap();
    assert!(namespace.ip("link show pol0").contains("pol0"));
    let again = namespace.within(|| port.start().unwrap());
    let mut rx = again.rx;
    peer.send(b"again").unwrap();
    while rx[0].rx(&mut cache, &mut burst) == 0 {
        assert!(began.elapsed() < PATIENCE);
    }
}

#[test]
fn a_loop_that_sleeps_is_woken_by_a_frame() {
    let Some((namespace, port)) = tap("", 1, 1024) else {
        return;
    };
    interface::a_loop_that_sleeps_is_woken_by_a_frame(port, &namespace.peer(7000));
}
