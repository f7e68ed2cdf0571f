//! Assignment of the NIC's queues to ports.

use std::time::Instant;

use pollux_pmd::driver::QueueList;
use pollux_pmd::{Cause, PortError};
use pollux_pmd_testkit::netns::Cable;

use super::traffic::{several_queues, two_queues};
use crate::common::{PATIENCE, Port};

/// One datagram of each flow.
fn send_flows(net: &Cable, flows: u16) {
    for flow in 0..flows {
        net.peer(7000 + flow).send(b"x").unwrap();
    }
}

/// Polls the ports until they have `n` frames together; returns the number of each.
fn receive<const N: usize>(mut ports: [&mut Port; N], n: usize) -> [usize; N] {
    let (mut got, began) = ([0; N], Instant::now());
    while got.iter().sum::<usize>() < n && began.elapsed() < PATIENCE {
        for (port, got) in ports.iter_mut().zip(&mut got) {
            *got += port.poll().len();
        }
    }
    got
}

fn refused(net: &Cable, spec: &str) -> PortError {
    let opened = Port::try_open(&net.a, spec, 1, 256).map(drop);
    opened.expect_err(spec)
}

#[test]
fn queues_that_are_not_received_are_named() {
    let Some(net) = several_queues(4) else { return };
    let port = Port::try_open(&net.a, "af_xdp:va", 1, 1024).unwrap();
    assert_eq!(port.started.port.spread(), 4);
    let unpolled = port.started.port.unpolled();
    assert_eq!(QueueList(&unpolled).to_string(), "1-3");
    port.stop();

    let mut port = Port::try_open(&net.a, "af_xdp:va", 4, 1024).unwrap();
    assert!(port.started.port.unpolled().is_empty());
    send_flows(&net, 60);
    assert_eq!(receive([&mut port], 60), [60]);
    port.stop();

    // `queue=` selects that queue alone.
    let port = Port::try_open(&net.a, "af_xdp:va,queue=2", 1, 1024).unwrap();
    assert_eq!(port.started.port.spread(), 1);
    assert_eq!(port.started.port.unpolled(), [0, 1, 3]);
    port.stop();
}

#[test]
fn ports_on_different_queues_share_the_program_of_the_interface() {
    let Some(net) = two_queues() else { return };
    let mut first = Port::try_open(&net.a, "af_xdp:va,queue=0", 1, 1024).unwrap();
    assert_eq!(first.started.port.unpolled(), [1]);
    let mut second = Port::try_open(&net.a, "af_xdp:va,queue=1", 1, 1024).unwrap();
    assert!(first.started.port.unpolled().is_empty());
    assert!(second.started.port.unpolled().is_empty());
    send_flows(&net, 40);
    let [a, b] = receive([&mut first, &mut second], 40);
    assert!(a > 0 && b > 0 && a + b == 40, "{a} and {b}");

    // The port that attached the program is closed, and the other still receives its frames.
    assert_eq!(first.stop().from_wire, a as u64);
    assert_eq!(second.started.port.unpolled(), [0]);
    send_flows(&net, 40);
    let [more] = receive([&mut second], 1);
    assert!((1..40).contains(&more), "{more}");
    // Its queue is free for another port.
    let mut third = Port::try_open(&net.a, "af_xdp:va,queue=0", 1, 1024).unwrap();
    send_flows(&net, 40);
    let [c, d] = receive([&mut third, &mut second], 40);
    assert!(c > 0 && d > 0 && c + d >= 40, "{c} and {d}");
    assert_eq!(second.stop().delivered, (b + more + d) as u64);
    third.stop();
    assert!(!net.a.ip("link show va").contains("xdp"));
}

#[test]
fn ports_that_share_a_program_must_agree_on_it() {
    let Some(net) = two_queues() else { return };
    let first = Port::try_open(&net.a, "af_xdp:va,queue=0,ports=7000-7039", 1, 1024).unwrap();
    let attached = ",ports=7000-7039,attach=skb";
    for options in ["", ",ports=7000-7040", ",other=drop", attached] {
        let error = refused(&net, &format!("af_xdp:va,queue=1{options}")).to_string();
        assert!(error.contains("must be the same for all"), "{error}");
    }
    first.stop();
}

#[test]
fn what_a_shared_program_drops_is_counted_once() {
    let Some(net) = two_queues() else { return };
    let spec = |queue| format!("af_xdp:va,queue={queue},ports=7000,other=drop");
    let mut ports = [0, 1].map(|queue| Port::try_open(&net.a, &spec(queue), 1, 1024).unwrap());
    for flow in 0..20 {
        net.peer(9000 + flow).send(b"not theirs").unwrap();
    }
    let (mut dropped, began) = (0, Instant::now());
    while dropped < 20 && began.elapsed() < PATIENCE {
        dropped = 0;
        for port in &mut ports {
            port.started.rx[0].sync_counters();
            dropped += port.dropped(Cause::NotForUs);
        }
    }
    let balances = ports.map(Port::stop);
    let dropped = balances.map(|balance| balance.dropped_for(Cause::NotForUs));
    assert_eq!(dropped.iter().sum::<u64>(), 20, "{dropped:?}");
}
