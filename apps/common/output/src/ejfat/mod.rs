//! Output to EJFAT, the load balancer of ESnet and Jefferson Lab: events as UDP datagrams
//! (docs/formats/ejfat.md).
//!
//! An accepted event is its 64-byte record, then u16 photomultiplier and u16 fine time of each hit,
//! little endian. It is cut into datagrams that fit the MTU; its number is its time stamp.
//! UDP does not acknowledge: an event is `delivered` when its datagrams were sent, and `refused` if
//! the receiver's host says that no program listens there.

mod flight;
mod headers;
mod link;
mod numbers;
mod output;
mod port_link;
mod sync;

use std::net::SocketAddr;
use std::sync::Arc;

use pollux_pmd::Registry;
use pollux_pmd::net::MacAddr;

use self::headers::HEADERS;
use self::link::{Link, UdpLink};
use self::output::EjfatOutput;
use self::port_link::{Hosts, PortLink};
use self::sync::Synchronizer;
use crate::counts::OutputCounts;
use crate::error::OutputError;
use crate::kind::{OutputKind, OutputPlan, RunContext};
use crate::output::EventOutput;
use crate::spec::OutputSpec;

/// Outputs `ejfat:HOST:PORT`.
pub const KIND: OutputKind = OutputKind {
    name: "ejfat",
    usage: "ejfat:HOST:PORT[,data-id=N][,mtu=BYTES][,sync=HOST:PORT][,source-id=N][,mac=MAC]\
            [,port=SPEC]",
    plan: |spec| Ok(Box::new(Ejfat::of(spec)?)),
};

const OPTIONS: [&str; 6] = ["data-id", "mtu", "sync", "source-id", "mac", "port"];

/// Default MTU: that of Ethernet.
const MTU: usize = 1500;

/// Longest IP packet.
const MAX_MTU: usize = 65_535;

/// Headers of UDP, and of IPv4 and IPv6 without options.
const UDP: usize = 8;
const IPV4: usize = 20;
const IPV6: usize = 40;

/// An output as its spec describes it.
#[derive(Clone, Debug)]
struct Ejfat {
    spec: OutputSpec,
    /// The load balancer, or a receiver.
    to: SocketAddr,
    /// Its control plane.
    sync: Option<SocketAddr>,
    data_id: u16,
    source_id: u32,
    /// Most bytes of an event in one datagram.
    piece: usize,
    /// Station that frames of a port go to, if it is not to be resolved.
    mac: Option<MacAddr>,
}

impl Ejfat {
    fn of(spec: &OutputSpec) -> Result<Self, OutputError> {
        spec.expect_options(&OPTIONS)?;
        let Some(target) = spec.target() else {
            return Err(spec.error("it needs the load balancer: ejfat:HOST:PORT"));
        };
        let to = spec.address("target", target)?;
        let sync = spec.option("sync")?;
        let sync = sync.map(|text| spec.address("sync", text)).transpose()?;
        let headers = UDP + HEADERS + if to.is_ipv4() { IPV4 } else { IPV6 };
        let mtu = spec.number("mtu", headers + 1..=MAX_MTU)?.unwrap_or(MTU);
        let data_id = spec.number("data-id", 0..=usize::from(u16::MAX))?;
        let source_id = spec.number("source-id", 0..=u32::MAX as usize)?;
        if source_id.is_some() && sync.is_none() {
            return Err(spec.error("source-id goes with sync=HOST:PORT: only its messages have it"));
        }
        let mac = spec.option("mac")?.map(|text| {
            let mac = text.parse::<MacAddr>().ok().filter(|mac| mac.is_unicast());
            let expected = "the address of one station, as in 02:00:00:00:00:01";
            mac.ok_or_else(|| spec.bad_value("mac", text, expected))
        });
        let mac = mac.transpose()?;
        match spec.port() {
            None if mac.is_some() => {
                return Err(spec.error("mac goes with port=SPEC: the kernel resolves addresses"));
            }
            Some(_) if !to.is_ipv4() || sync.is_some_and(|sync| !sync.is_ipv4()) => {
                return Err(spec.error("port=SPEC sends to IPv4 addresses alone"));
            }
            _ => {}
        }
        Ok(Self {
            spec: spec.clone(),
            to,
            sync,
            data_id: data_id.map_or(1, |id| id as u16),
            source_id: source_id.map_or(1, |id| id as u32),
            piece: mtu - headers,
            mac,
        })
    }

    fn failed(&self, what: impl Into<String>) -> OutputError {
        OutputError::Open {
            spec: self.spec.to_string(),
            what: what.into(),
        }
    }
}

impl OutputPlan for Ejfat {
    fn port(&self) -> Option<&str> {
        self.spec.port()
    }

    fn check(&self, ports: &Registry) -> Result<(), OutputError> {
        let Some(port) = self.spec.port() else {
            return Ok(());
        };
        let looked = ports.look(port);
        looked
            .map(drop)
            .map_err(|error| self.failed(error.to_string()))
    }

    fn open(
        &self,
        run: &RunContext<'_>,
        counts: Arc<OutputCounts>,
    ) -> Result<Box<dyn EventOutput>, OutputError> {
        let link: Box<dyn Link> = match self.spec.port() {
            None => {
                let link = UdpLink::new(self.to, self.sync);
                Box::new(link.map_err(|error| self.failed(error.to_string()))?)
            }
            Some(port) => {
                let hosts = Hosts {
                    data: self.to,
                    control: self.sync,
                    mac: self.mac,
                };
                let link = PortLink::new(port, run, &hosts, HEADERS + self.piece);
                Box::new(link.map_err(|error| self.failed(error.to_string()))?)
            }
        };
        let sync = self.sync.map(|_| Synchronizer::new(self.source_id));
        Ok(Box::new(EjfatOutput::new(
            &self.spec,
            link,
            (self.data_id, self.piece),
            sync,
            run.run.is_some(),
            counts,
        )))
    }
}

#[cfg(test)]
mod tests;
