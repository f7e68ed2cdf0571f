//! Two connection managers, and a network between them.

mod bytes;
mod faults;
mod roles;

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use pollux_pmd::mempool::time::Ns;

use super::*;
use crate::address::{Mtu, QpNumber};
use crate::endpoint::PathOptions;
use crate::mad::{MAD_BYTES, Mad};

const PORT: u16 = 7174;
const ACTIVE: Ipv4Addr = Ipv4Addr::new(192, 168, 77, 1);
const PASSIVE: Ipv4Addr = Ipv4Addr::new(192, 168, 77, 2);

fn offer(number: u32) -> Offer {
    Offer {
        qp: QpNumber::new(number).unwrap(),
        path: PathOptions {
            mtu: Mtu::B4096,
            retry: 5,
            rnr_retry: 6,
            gets: 8,
            ..PathOptions::default()
        },
        answers: 16,
    }
}

/// A datagram from a host.
fn from(host: Ipv4Addr, bytes: [u8; MAD_BYTES]) -> Mad {
    Mad { host, bytes }
}

/// A manager and the program that it has.
struct Host {
    cm: ConnectionManager,
    ip: Ipv4Addr,
    /// Accepts what is asked for, with the queue pair of this number.
    qp: u32,
    agreed: Option<Agreed>,
    seen: Vec<CmEvent>,
}

impl Host {
    fn new(ip: Ipv4Addr, qp: u32) -> Self {
        let mut cm = ConnectionManager::new(CmOptions::new(ip)).unwrap();
        cm.listen(PORT);
        Self {
            cm,
            ip,
            qp,
            agreed: None,
            seen: Vec::new(),
        }
    }

    /// Accepts and confirms.
    fn program(&mut self, now: Ns) {
        while let Some(event) = self.cm.event() {
            match &event {
                CmEvent::Requested { id, .. } => {
                    let agreed = self.cm.accept(*id, &offer(self.qp), b"welcome");
                    self.agreed = Some(agreed.unwrap());
                    self.cm.confirm(*id, now).unwrap();
                }
                CmEvent::Accepted { id, agreed, .. } => {
                    self.agreed = Some(*agreed);
                    self.cm.confirm(*id, now).unwrap();
                }
                _ => {}
            }
            self.seen.push(event);
        }
    }

    fn is_established(&self) -> bool {
        let began = |event: &CmEvent| {
            matches!(
                event,
                CmEvent::Established { .. } | CmEvent::Accepted { .. }
            )
        };
        self.seen.iter().any(began) && !self.is_over()
    }

    fn is_over(&self) -> bool {
        self.seen
            .iter()
            .any(|event| matches!(event, CmEvent::Disconnected { .. } | CmEvent::Failed { .. }))
    }
}

/// Two hosts. Each datagram has a fate, of two bits: as it should be, lost, doubled, or late.
struct Network {
    hosts: [Host; 2],
    now: Ns,
    on_the_way: VecDeque<(Ns, Ipv4Addr, Mad)>,
    fates: VecDeque<u8>,
}

impl Network {
    fn new(fates: &[u8]) -> Self {
        Self {
            hosts: [Host::new(ACTIVE, 0x11), Host::new(PASSIVE, 0x22)],
            now: Ns(1 << 40),
            on_the_way: VecDeque::new(),
            fates: fates.iter().copied().collect(),
        }
    }

    fn connect(&mut self) -> ConnectionId {
        let active = &mut self.hosts[0];
        let offer = offer(active.qp);
        active
            .cm
            .connect(PASSIVE, PORT, &offer, b"hello", self.now)
            .unwrap()
    }

    /// Lets a millisecond pass.
    fn step(&mut self) {
        self.now = self.now + Ns(1_000_000);
        let due = |(due, ..): &(Ns, Ipv4Addr, Mad)| *due <= self.now;
        let (arrived, later): (VecDeque<_>, _) = self.on_the_way.drain(..).partition(due);
        self.on_the_way = later;
        for (_, from, datagram) in arrived {
            for host in &mut self.hosts {
                if host.ip == datagram.host {
                    let datagram = Mad {
                        host: from,
                        ..datagram
                    };
                    host.cm.receive(&datagram, self.now);
                }
            }
        }
        for host in &mut self.hosts {
            host.program(self.now);
            host.cm.poll(self.now);
            while let Some(datagram) = host.cm.transmit() {
                let late = self.now + Ns(700_000_000);
                let times: &[Ns] = match self.fates.pop_front().unwrap_or(0) & 3 {
                    0 => &[self.now],
                    1 => &[],
                    2 => &[self.now, late],
                    _ => &[late],
                };
                for time in times {
                    self.on_the_way.push_back((*time, host.ip, datagram));
                }
            }
        }
    }

    fn run(&mut self, milliseconds: u32) {
        for _ in 0..milliseconds {
            self.step();
        }
    }
}
