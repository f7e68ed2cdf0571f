//! Lost frames have a cause; refused configurations and removed interfaces are reported.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use pollux_mempool::{Mempool, PoolConfig};
use pollux_pmd::{Cause, PortConfig, PortError, Registry, RxState};
use pollux_pmd_testkit::netns::{Namespace, payload, udp_frame};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use super::{TAP, refused, tap};
use crate::common::{PATIENCE, Port};

#[test]
fn what_the_kernel_drops_is_counted_as_the_kernel_counts_it() {
    let Some((namespace, mut port)) = tap("", 1, 1024) else {
        return;
    };
    let peer = namespace.peer(7000);
    // The capacity of the queue is that of the port's configuration: 64.
    for _ in 0..100 {
        peer.send(&[1; 58]).unwrap();
    }
    let frames = port.receive(64).len();
    port.started.rx[0].sync_counters();
    assert_eq!((frames, port.dropped(Cause::KernelDrop)), (64, 36));
    port.started.rx[0].sync_counters();
    assert_eq!(port.dropped(Cause::KernelDrop), 36, "each is counted once");
    let statistics = port.started.port.statistics();
    let counter = |name| {
        statistics
            .iter()
            .find(|(known, _)| known == name)
            .unwrap()
            .1
    };
    assert_eq!((counter("tx_packets"), counter("tx_dropped")), (64, 36));
    assert_eq!(counter("tx_bytes"), 6400);
    // Some are still queued at the end.
    for _ in 0..70 {
        peer.send(&[1; 58]).unwrap();
    }
    let balance = port.stop();
    assert_eq!((balance.from_wire, balance.delivered), (170, 64));
    assert_eq!(balance.dropped_for(Cause::Aborted), 64);
    assert_eq!(balance.dropped_for(Cause::KernelDrop), 42);
}

#[test]
fn frames_that_cannot_be_taken_have_a_cause() {
    // four buffers, of which a frame of nine thousand bytes needs five
    let Some((namespace, mut port)) = tap(",mtu=9000", 1, 16) else {
        return;
    };
    let peer = namespace.peer(7000);
    let held: Vec<_> = (0..12).map(|_| port.cache.alloc().unwrap()).collect();
    for len in [100, 8972, 8600, 100] {
        peer.send(&payload(len, 0)).unwrap();
    }
    let lens = |frames: Vec<crate::common::Frame>| {
        let len = |frame: &crate::common::Frame| frame.bytes.len();
        frames.iter().map(len).collect::<Vec<_>>()
    };
    assert_eq!(lens(port.receive(2)), [142, 142]);
    drop(held);
    // An MTU that is raised later: frames longer than the buffers are not truncated.
    namespace.ip("link set pol0 mtu 20000");
    for len in [100, 10_200, 8976, 15_000, 300] {
        peer.send(&payload(len, 0)).unwrap();
    }
    assert_eq!(lens(port.receive(3)), [142, 9018, 342]);
    let balance = port.stop();
    assert_eq!(balance.from_wire, 9);
    assert_eq!(balance.dropped_for(Cause::NoMbuf), 2);
    assert_eq!(balance.dropped_for(Cause::Oversize), 2);
}

#[test]
fn frames_that_the_link_cannot_carry_are_errors() {
    let Some((namespace, mut port)) = tap("", 1, 1024) else {
        return;
    };
    let peer = namespace.peer(7000);
    let long = udp_frame(7000, &payload(1477, 0));
    assert_eq!(port.send(&[vec![0; 13], long, udp_frame(7000, b"good")]), 3);
    assert_eq!(port.sent(), (1, 2));
    assert_eq!(peer.recv(&mut [0; 2000]).unwrap(), 4);
    port.stop();
}

#[test]
fn traffic_resumes_when_the_interface_is_up_again() {
    let Some((namespace, mut port)) = tap("", 1, 1024) else {
        return;
    };
    let peer = namespace.peer(7000);
    assert!(port.started.port.link().up);
    namespace.ip("link set pol0 down");
    port.wait_for(RxState::Down);
    assert!(!port.started.port.link().up);
    let frames: Vec<_> = (0..6).map(|i| udp_frame(7000, &payload(20, i))).collect();
    assert_eq!(
        (port.send(&frames), port.sent()),
        (0, (0, 0)),
        "they stay with the caller"
    );
    namespace.ip("link set pol0 up");
    port.wait_for(RxState::Live);
    let (mut rest, began) = (&frames[..], Instant::now());
    while !rest.is_empty() && began.elapsed() < PATIENCE {
        rest = &rest[port.send(rest)..];
    }
    for i in 0..6 {
        let mut got = [0; 100];
        assert_eq!(peer.recv(&mut got).unwrap(), 20);
        assert_eq!(got[..20], payload(20, i));
    }
    namespace.ip("neighbour replace 10.77.0.2 lladdr 02:00:00:00:00:0a dev pol0 nud permanent");
    peer.send(b"after").unwrap();
    assert_eq!(port.receive(1).len(), 1);
    assert_eq!(port.stop().delivered, 1);
}

#[test]
fn an_interface_that_is_deleted_is_one_counted_error_and_gone() {
    let Some((namespace, mut port)) = tap("", 2, 1024) else {
        return;
    };
    namespace.ip("link delete pol0");
    port.wait_for(RxState::Gone);
    for _ in 0..1000 {
        assert!(port.poll().is_empty());
    }
    // each of the two queues reports it once
    assert_eq!(port.dropped(Cause::DeviceError), 2);
    assert_eq!(port.send(&vec![udp_frame(7000, b"lost"); 5]), 5);
    assert_eq!(port.sent(), (0, 5), "they are never sent");
    // another interface of that name is not the same
    namespace.ip("tuntap add dev pol0 mode tap multi_queue");
    namespace.ip("link set pol0 up");
    let link = port.started.port.link();
    assert!(!link.up && link.gone);
    assert!(port.started.port.statistics().is_empty());
    assert_eq!(port.stop().from_wire, 2);
}

#[test]
fn an_interface_that_goes_before_the_start_is_not_made_anew() {
    let Some(namespace) = Namespace::new() else {
        return;
    };
    let pool = Mempool::new(PoolConfig::default()).unwrap();
    let error = namespace.within(|| {
        let port = Registry::builtin().open("tap:pol0").unwrap();
        let port = port.configure(PortConfig::new(pool)).unwrap();
        namespace.ip("link delete pol0");
        port.start().map(drop).unwrap_err().to_string()
    });
    assert!(
        error.contains("it has disappeared since the port was opened"),
        "{error}"
    );
    assert!(!namespace.ip("link show").contains("pol0"));
}

#[test]
fn a_name_that_cannot_be_says_why() {
    let Some(namespace) = Namespace::new() else {
        return;
    };
    for name in ["sixteen_letters_", "a%d", "a b", "a:b", "a/b", ".."] {
        let error = refused(&namespace, &format!("tap:{name}"));
        assert!(error.is_usage(), "{error}");
        let text = error.to_string();
        assert!(text.contains("at most 15 characters"), "{text}");
    }
    assert!(
        refused(&namespace, "tap")
            .to_string()
            .contains("as in tap:pol0")
    );
    for options in [
        "mtu=67",
        "mtu=65522",
        "mac=01:00:5e:00:00:01",
        "mac=x",
        "up=1",
        "persist=x",
    ] {
        let error = refused(&namespace, &format!("tap:pol0,{options}"));
        assert!(error.is_usage(), "{error}");
    }
    namespace.ip("link add pol1 type veth peer name pol3");
    namespace.ip("tuntap add dev pol2 mode tap");
    for name in ["pol1", "pol2", "lo"] {
        let error = refused(&namespace, &format!("tap:{name}"));
        assert!(!error.is_usage(), "{error}");
        let text = error.to_string();
        assert!(text.contains("is not a multi-queue tap"), "{name}: {text}");
    }
}

#[test]
fn an_interface_that_has_a_port_is_refused_to_another() {
    let Some((namespace, mut port)) = tap("", 2, 1024) else {
        return;
    };
    let error = refused(&namespace, "tap:pol0,mtu=9000,persist");
    assert!(!error.is_usage());
    let text = error.to_string();
    assert!(text.contains("this program itself has it"), "{text}");
    assert!(text.contains("choose another name"), "{text}");
    let shown = namespace.ip("link show pol0");
    assert!(shown.contains("mtu 1500"), "it is as it was: {shown}");
    // All frames belong to the first port.
    for flow in 0..20 {
        namespace.peer(7000 + flow).send(b"whole").unwrap();
    }
    assert_eq!(port.receive(20).len(), 20);
    assert_eq!(port.stop().from_wire, 20);
    Port::try_open(&namespace, TAP, 1, 64).unwrap().stop();
}

#[test]
fn the_program_that_has_an_interface_is_named() {
    const HOLD: &str = "import fcntl, struct, sys\n\
        tun = open('/dev/net/tun', 'r+b', buffering=0)\n\
        fcntl.ioctl(tun, 0x400454ca, struct.pack('16sH22x', b'pol0', 0x1102))\n\
        print('has it', flush=True)\n\
        sys.stdin.read()";
    let Some(namespace) = Namespace::new() else {
        return;
    };
    let held = namespace.within(|| {
        let mut python = Command::new("python3");
        python.args(["-c", HOLD]).stdin(Stdio::piped());
        python.stdout(Stdio::piped()).spawn()
    });
    let Ok(mut held) = held else {
        println!("skipped: no python3 program");
        return;
    };
    let mut said = String::new();
    let mut from = BufReader::new(held.stdout.take().unwrap());
    from.read_line(&mut said).unwrap();
    assert_eq!(said.trim(), "has it");
    let text = refused(&namespace, "tap:pol0").to_string();
    let who = format!("process {} (python3", held.id());
    assert!(text.contains(&who), "{text}");
    drop(held.stdin.take());
    held.wait().unwrap();
    Port::try_open(&namespace, TAP, 1, 64).unwrap().stop();
}

#[test]
fn an_interface_is_kept_if_asked_for() {
    let Some(namespace) = Namespace::new() else {
        return;
    };
    let there = || namespace.ip("link show").contains("pol0");
    for (spec, stays) in [
        ("tap:pol0", false),
        ("tap:pol0,persist", true),
        ("tap:pol0,mtu=4000", true),
        ("tap:pol0,persist=off", false),
    ] {
        let port = Port::try_open(&namespace, spec, 1, 64).unwrap();
        assert!(there(), "{spec}");
        if spec.contains("mtu") {
            assert_eq!(port.started.port.capabilities().max_frame, 4014);
        }
        port.stop();
        // a program that another test is starting holds a copy until it runs
        let began = Instant::now();
        while there() != stays {
            assert!(began.elapsed() < PATIENCE, "{spec}");
        }
    }
}

#[test]
fn without_permission_the_message_names_the_capability() {
    let refused = std::thread::spawn(|| {
        let none = CapabilitySet::empty();
        let sets = CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        };
        // for this thread alone
        set_capabilities(None, sets).unwrap();
        Registry::builtin().open(TAP).map(drop).unwrap_err()
    });
    let error = refused.join().unwrap();
    assert!(matches!(error, PortError::System { .. }));
    let text = format!("{error:#}");
    let hint = "CAP_NET_ADMIN";
    assert!(
        text.contains(hint) || text.contains("modprobe tun"),
        "{text}"
    );
}
