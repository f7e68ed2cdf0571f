//! Quarantine: buffers that the kernel may still write are in no pool.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use pollux_mempool::Mempool;
use pollux_pmd::quarantine::leaked_buffers;
use pollux_pmd::{Configured, Port as PmdPort, RxQueue, StartedPort};
use pollux_pmd_testkit::netns::Cable;

use super::traffic::two_queues;
use crate::common::{PATIENCE, Port};

/// Number of buffers that a port reports as quarantined.
fn quarantined<S>(port: &PmdPort<S>) -> u64 {
    let statistics = port.statistics();
    let mut counts = statistics.iter();
    counts
        .find(|(name, _)| name == "quarantined_buffers")
        .expect("no such count")
        .1
}

/// A copy that keeps a queue's socket open, as a forked child does.
fn copy_of_the_socket(queue: &RxQueue) -> OwnedFd {
    queue.event().unwrap().try_clone_to_owned().unwrap()
}

fn missing(pool: &Mempool) -> usize {
    pool.buffers() - pool.available()
}

/// Stops a port while a copy of its socket exists; returns the pool, and the number of buffers of
/// the kernel.
fn stopped_with_a_copy(net: &Cable) -> (PmdPort<Configured>, Mempool, OwnedFd, usize) {
    let port = Port::open(net, "af_xdp:va");
    drop(port.cache);
    let StartedPort {
        port: handle,
        rx,
        tx,
    } = port.started;
    let (copy, posted) = (copy_of_the_socket(&rx[0]), missing(&port.pool));
    assert!(posted >= 64, "{posted}");
    (handle.stop(rx, tx).unwrap(), port.pool, copy, posted)
}

/// Sends until a frame has arrived: the far end chooses its queue.
fn await_a_frame(net: &Cable, port: &mut Port) {
    let (mut flow, began) = (7000, Instant::now());
    while port.poll().is_empty() {
        assert!(began.elapsed() < PATIENCE, "no frame comes");
        net.peer(flow).send(b"to any queue").unwrap();
        flow += 1;
    }
}

#[test]
fn buffers_stay_in_quarantine_while_a_copy_of_the_socket_lives() {
    let Some(net) = Cable::new(1500) else { return };
    let (port, pool, copy, posted) = stopped_with_a_copy(&net);
    assert_eq!(missing(&pool), posted, "they are not the pool's yet");
    assert_eq!(quarantined(&port), posted as u64);
    drop(copy);
    // The next start binds the queue, so the kernel has released all but the buffers of this start.
    let StartedPort { port, rx, tx } = port.start().unwrap();
    assert_eq!((quarantined(&port), missing(&pool)), (0, posted));
    let port = port.stop(rx, tx).unwrap();
    assert_eq!((quarantined(&port), missing(&pool)), (0, 0));
}

#[test]
fn a_port_that_goes_asks_once_more_for_its_buffers() {
    let Some(net) = Cable::new(1500) else { return };
    let (port, pool, copy, posted) = stopped_with_a_copy(&net);
    assert_eq!(missing(&pool), posted);
    drop(copy);
    // The kernel releases buffers in the background, and the end of the port no longer waits.
    std::thread::sleep(Duration::from_millis(300));
    drop(port);
    assert_eq!(missing(&pool), 0);
}

#[test]
fn buffers_that_the_kernel_never_gives_back_are_leaked_and_counted() {
    let Some(net) = Cable::new(1500) else { return };
    let before = leaked_buffers();
    let (port, pool, copy, posted) = stopped_with_a_copy(&net);
    drop(port);
    assert!(leaked_buffers() >= before + posted as u64);
    drop(copy);
    assert_eq!(missing(&pool), posted);
}

#[test]
fn buffers_are_back_once_the_kernel_has_let_go() {
    let Some(net) = two_queues() else { return };
    for queues in [1, 2, 1] {
        let mut port = Port::try_open(&net.a, "af_xdp:va", queues, 1024).unwrap();
        await_a_frame(&net, &mut port);
        assert_eq!(quarantined(&port.started.port), 0);
        let StartedPort {
            port: handle,
            rx,
            tx,
        } = port.started;
        let began = Instant::now();
        let handle = handle.stop(rx, tx).unwrap();
        assert!(began.elapsed() < PATIENCE);
        assert_eq!(quarantined(&handle), 0);
        drop(port.cache);
        assert_eq!(missing(&port.pool), 0);
    }
}

#[test]
fn a_queue_that_is_dropped_leaves_its_buffers_and_the_other_queue() {
    let Some(net) = two_queues() else { return };
    let mut port = Port::try_open(&net.a, "af_xdp:va", 2, 1024).unwrap();
    let all = missing(&port.pool) as u64;
    drop(port.started.rx.remove(0));
    let kept = quarantined(&port.started.port);
    assert!(kept > 0 && kept < all, "{kept} of {all}");
    await_a_frame(&net, &mut port);
    let (pool, cache) = (port.pool, port.cache);
    drop((port.started, cache));
    assert_eq!(missing(&pool), 0);
}

#[test]
fn an_interface_that_has_left_is_a_proof() {
    let Some(net) = Cable::new(1500) else { return };
    let port = Port::open(&net, "af_xdp:va");
    let _copy = copy_of_the_socket(&port.started.rx[0]);
    net.a.ip("link delete va");
    port.stop();

    let Some(net) = Cable::new(1500) else { return };
    let port = Port::open(&net, "af_xdp:va");
    let _copy = copy_of_the_socket(&port.started.rx[0]);
    net.a
        .ip(&format!("link set va name vm netns {}", net.b.name()));
    port.stop();
}
