//! The hot loop of the RoCEv2 endpoint: requester and responder, over a loopback port.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use pollux_mempool::region::MemoryRegion;
use pollux_mempool::time::Ns;
use pollux_mempool::{Mempool, PoolConfig};
use pollux_pmd::{PortConfig, Registry, StartedPort};
use pollux_rdma::roce::{RoceEndpoint, RoceOptions};
use pollux_rdma::{Access, Memory, Mtu, PathOptions, Payload, Put, QpOptions, QueuePair};

use crate::loops::{Loop, Round};

/// Requests that are posted with one doorbell.
const REQUESTS: usize = QueuePair::REQUESTS;

pub(crate) fn all() -> Vec<Loop> {
    let write = |name, element, make| Loop {
        name,
        element,
        elements: REQUESTS as u64,
        rounds: 1024,
        make,
    };
    vec![
        write(
            "rdma_write_64",
            "WRITE of 64 B, both sides",
            (|| write_round(64)) as fn() -> Result<Round>,
        ),
        write("rdma_write_4096", "WRITE of 4 KiB, both sides", || {
            write_round(4096)
        }),
    ]
}

/// An endpoint with two queue pairs that are connected to each other.
fn write_round(bytes: u32) -> Result<Round> {
    let pool = Mempool::new(PoolConfig {
        buffers: 2048,
        data_room: 4352,
        ..PoolConfig::default()
    })?;
    let port = Registry::builtin().open("loopback")?;
    let port = port.configure(PortConfig::new(pool.clone()))?;
    let capabilities = port.capabilities();
    let StartedPort {
        port,
        mut rx,
        mut tx,
    } = port.start()?;
    let queues = rx.pop().zip(tx.pop()).context("no queues")?;
    let options = RoceOptions::new(Ipv4Addr::new(10, 0, 0, 1));
    let (control, mut poll) = RoceEndpoint::new(&options, &capabilities, queues, pool.cache(256)?)?;
    let mut endpoint = control.endpoint();
    let mut a = endpoint.create_queue_pair(&QpOptions::default())?;
    let b = endpoint.create_queue_pair(&QpOptions::default())?;
    let path = PathOptions {
        mtu: Mtu::B4096,
        ..PathOptions::default()
    };
    endpoint.connect(&a, &b.address(), &path)?;
    endpoint.connect(&b, &a.address(), &path)?;
    let memory = Memory::new(MemoryRegion::builder(1 << 20).build()?);
    let from = endpoint.register_buffer(&memory, 0..1 << 19, Access::LOCAL)?;
    let to = endpoint.register_buffer(&memory, 1 << 19..1 << 20, Access::WRITE)?;
    let mut now = Ns(0);
    Ok(Box::new(move || {
        for n in 0..REQUESTS as u64 {
            let at = n * u64::from(bytes);
            let request = Put {
                cookie: n,
                payload: Payload::Indirect(from.part(at, bytes)),
                to: to.remote().at(at),
                immediate: None,
            };
            if a.put(request).is_err() {
                return false;
            }
        }
        a.doorbell();
        let mut left = REQUESTS;
        // The port and the other end live as long as the loop.
        let _ends = (&port, &b, &control);
        for _ in 0..16 {
            now.0 += 1000;
            poll.poll(now);
            while a.poll_event().is_some() {
                left -= 1;
            }
            if left == 0 {
                return true;
            }
        }
        false
    }))
}
