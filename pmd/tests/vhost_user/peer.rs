//! Peers in processes of their own, which are killed during traffic.

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use pollux_mempool::Burst;

use crate::dpdk::{Testpmd, there_is_dpdk};
use crate::support::{PATIENCE, Place, Port, frame, number, spec};

/// The spec that [`echo`] opens; without it, [`echo`] returns at once.
const SPEC: &str = "POLLUX_TEST_ECHO";

/// Not a test: the other process. Returns the frames that it receives, until it is killed.
#[test]
fn echo() {
    let Ok(spec) = std::env::var(SPEC) else {
        return;
    };
    let mut port = Port::open(&spec, 1);
    let (began, mut burst) = (Instant::now(), Burst::<32>::new());
    while began.elapsed() < 2 * PATIENCE {
        port.started.rx[0].rx(&mut port.cache, &mut burst);
        port.started.tx[0].tx(&mut port.cache, &mut burst);
    }
}

/// A process that runs [`echo`]; killed when it is dropped.
struct Echo(Child);

impl Echo {
    fn start(spec: &str) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "peer::echo"])
            .env(SPEC, spec)
            .stdout(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Sends frames and receives them back until `enough` have returned, with more in flight at the
/// end.
fn talk(port: &mut Port, offered: &mut u32, enough: usize) {
    let (began, mut got) = (Instant::now(), 0);
    loop {
        assert!(began.elapsed() < PATIENCE, "{got} frames came back");
        let frames: Vec<_> = (0..32).map(|i| frame(*offered + i, 200)).collect();
        *offered += port.send(0, &frames) as u32;
        if got >= enough {
            return;
        }
        for bytes in port.poll(0) {
            assert!(number(&bytes) < *offered);
            got += 1;
        }
    }
}

/// Exchanges frames with one peer after the other; each is killed without a close of the session.
fn killed<P>(options: &str, start: impl Fn(&std::path::Path) -> P) {
    println!("{options}");
    let place = Place::new();
    let mut port = Port::open(&spec(&place.socket(), options), 1);
    let mut offered = 0;
    for round in 0..2 {
        let peer = start(&place.socket());
        talk(&mut port, &mut offered, 1000);
        assert!(port.is_up());
        drop(peer);
        // Polls and sends on, as a loop without knowledge of the peer does.
        let began = Instant::now();
        while port.is_up() {
            assert!(began.elapsed() < PATIENCE);
            offered += port.send(0, &[frame(offered, 60)]) as u32;
            port.poll(0);
        }
        assert_eq!(port.started.port.link().changes, 2 * (round + 1));
        assert_eq!(port.send(0, &[frame(0, 60)]), 0, "no peer to take it");
    }
    let (received, sent, errors) = port.stop();
    assert_eq!(sent + errors, u64::from(offered), "{errors} lost");
    assert!(received.from_wire >= 2000 && received.from_wire <= sent);
    if !options.contains("server") {
        // The process that was killed has left it.
        std::fs::remove_file(place.socket()).unwrap();
    }
}

#[test]
fn a_back_end_that_is_killed_is_replaced() {
    for rings in ["packed=on", "packed=off"] {
        killed(rings, |socket| {
            Echo::start(&spec(socket, "role=device,server"))
        });
        killed(&format!("server,{rings}"), |socket| {
            Echo::start(&spec(socket, "role=device"))
        });
    }
}

#[test]
fn a_front_end_that_is_killed_is_replaced() {
    for rings in ["packed=on", "packed=off"] {
        killed(&format!("role=device,{rings}"), |socket| {
            Echo::start(&spec(socket, "server"))
        });
        killed(&format!("role=device,server,{rings}"), |socket| {
            Echo::start(&spec(socket, "role=driver"))
        });
    }
}

#[test]
fn ends_of_dpdk_that_are_killed_are_replaced() {
    if !there_is_dpdk() {
        return;
    }
    killed("packed=on", |socket| {
        // A server does not take over a path itself.
        let _ = std::fs::remove_file(socket);
        Testpmd::vhost(socket, 1)
    });
    killed("role=device,server", |socket| {
        Testpmd::virtio_user(socket, 1, "packed_vq=1", 1514)
    });
}
