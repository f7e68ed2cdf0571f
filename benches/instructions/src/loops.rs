//! A loop whose instructions are counted, and the ports and frames that loops use.

use std::net::{Ipv4Addr, SocketAddrV4};

use anyhow::Result;
use pollux_mempool::{Mempool, PoolConfig};
use pollux_pmd::net::{MacAddr, UdpEndpoint, UdpTemplate};
use pollux_pmd::{PortConfig, Registry, StartedPort};

/// One round of a loop, with all that it needs; whether it did its work.
pub(crate) type Round = Box<dyn FnMut() -> bool>;

/// A loop whose instructions are counted.
pub(crate) struct Loop {
    /// In the baseline.
    pub(crate) name: &'static str,
    /// What one element is.
    pub(crate) element: &'static str,
    /// Elements that a round handles.
    pub(crate) elements: u64,
    /// Rounds after which nothing is new: caches of buffers have been filled, rings have turned.
    pub(crate) rounds: u64,
    pub(crate) make: fn() -> Result<Round>,
}

pub(crate) fn pool() -> Result<Mempool> {
    Ok(Mempool::new(PoolConfig {
        buffers: 2048,
        ..PoolConfig::default()
    })?)
}

pub(crate) fn port(spec: &str, pool: &Mempool) -> Result<StartedPort> {
    let port = Registry::builtin().open(spec)?;
    Ok(port.configure(PortConfig::new(pool.clone()))?.start()?)
}

pub(crate) fn template(to: SocketAddrV4) -> UdpTemplate {
    let end = |mac, socket| UdpEndpoint {
        mac: MacAddr([2, 0, 0, 0, 0, mac]),
        socket,
    };
    let from = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 4000);
    UdpTemplate::new(end(1, from), end(2, to))
}
