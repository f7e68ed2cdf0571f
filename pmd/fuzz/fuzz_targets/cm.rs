//! Datagrams of connection management: those of a conversation between two hosts, in any order, again and
//! with other bytes; and what a program and time do between them.
//!
//! What waits to be sent and reported stays bounded, and every connection comes to an end.
#![no_main]

use std::iter;
use std::net::Ipv4Addr;

use libfuzzer_sys::fuzz_target;
use pollux_pmd::mempool::time::Ns;
use pollux_pmd_fuzz::Input;
use pollux_rdma::cm::{CmEvent, CmOptions, ConnectionId, ConnectionManager, Offer};
use pollux_rdma::{MAD_BYTES, Mad, PathOptions, QpNumber};

const PORT: u16 = 7174;
const OURS: Ipv4Addr = Ipv4Addr::new(192, 168, 77, 1);
const THEIRS: Ipv4Addr = Ipv4Addr::new(192, 168, 77, 2);
const CONNECTIONS: usize = 4;
/// Most that waits: see `ConnectionManager`.
const WAITING: usize = 4 * CONNECTIONS + 16;

fn host(ip: Ipv4Addr) -> ConnectionManager {
    let options = CmOptions {
        connections: CONNECTIONS,
        ..CmOptions::new(ip)
    };
    let mut cm = ConnectionManager::new(options).expect("random bits");
    cm.listen(PORT);
    cm
}

fn offer(qp: u32) -> Offer {
    Offer {
        qp: QpNumber::new(2 + qp % 64).expect("a number of 24 bits"),
        path: PathOptions::default(),
        answers: 16,
    }
}

/// A host, its program, and the datagrams that it has sent.
struct Host {
    cm: ConnectionManager,
    asked: Vec<ConnectionId>,
    sent: Vec<[u8; MAD_BYTES]>,
}

impl Host {
    fn new(ip: Ipv4Addr) -> Self {
        Self {
            cm: host(ip),
            asked: Vec::new(),
            sent: Vec::new(),
        }
    }

    /// Does one thing that a program does, with a connection that it knows of.
    fn act(&mut self, what: u8, other: Ipv4Addr, now: Ns) {
        let events: Vec<_> = iter::from_fn(|| self.cm.event()).collect();
        assert!(events.len() <= WAITING + 2 * CONNECTIONS);
        for event in events {
            if let CmEvent::Requested { id, .. } | CmEvent::Accepted { id, .. } = event {
                self.asked.push(id);
            }
        }
        let id = self
            .asked
            .get(usize::from(what >> 3) % self.asked.len().max(1));
        // A call at the wrong step is refused.
        match (what & 7, id) {
            (0, _) => {
                let qp = u32::from(what >> 3);
                let _ = self.cm.connect(other, PORT, &offer(qp), &[what], now);
            }
            (1 | 2, Some(id)) => drop(self.cm.accept(*id, &offer(id_bits(id)), &[what])),
            (3 | 4, Some(id)) => drop(self.cm.confirm(*id, now)),
            (5, Some(id)) => drop(self.cm.disconnect(*id, now)),
            (6, Some(id)) => drop(self.cm.reject(*id, &[what], now)),
            _ => {}
        }
        let sent: Vec<_> = iter::from_fn(|| self.cm.transmit()).collect();
        assert!(sent.len() <= WAITING);
        assert!(sent.iter().all(|datagram| datagram.host == other));
        self.sent
            .extend(sent.into_iter().map(|datagram| datagram.bytes));
    }
}

fn id_bits(id: &ConnectionId) -> u32 {
    u32::from_str_radix(&id.to_string(), 16).expect("hexadecimal digits")
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let (mut ours, mut theirs) = (Host::new(OURS), Host::new(THEIRS));
    let mut now = Ns(0);
    while !input.is_empty() {
        let step = input.u8();
        match step & 7 {
            0 | 1 => ours.act(input.u8(), THEIRS, now),
            2 | 3 => theirs.act(input.u8(), OURS, now),
            // A datagram of the other one, the last or an earlier one, with some bytes changed.
            4..7 => {
                let (from, to, ip) = if step & 8 == 0 {
                    (&theirs, &mut ours.cm, THEIRS)
                } else {
                    (&ours, &mut theirs.cm, OURS)
                };
                let back = usize::from(step >> 4).min(from.sent.len().saturating_sub(1));
                let mut mad = match from.sent.len().checked_sub(back + 1) {
                    Some(index) => from.sent[index],
                    None => [0; MAD_BYTES],
                };
                for _ in 0..input.u8() % 4 {
                    mad[usize::from(input.u8())] = input.u8();
                }
                to.receive(
                    &Mad {
                        host: ip,
                        bytes: mad,
                    },
                    now,
                );
            }
            _ => {
                now = now + Ns(u64::from(input.u16()) << 20);
                for host in [&mut ours, &mut theirs] {
                    assert!(host.cm.poll(now).is_none_or(|next| next > now));
                }
            }
        }
    }
    // Nothing waits for ever: 60 s for each repetition are more than any message has.
    for host in [&mut ours, &mut theirs] {
        for _ in 0..40 {
            now = now + Ns(61_000_000_000);
            host.cm.poll(now);
            while host.cm.transmit().is_some() || host.cm.event().is_some() {}
        }
        assert_eq!(host.cm.poll(now), None);
    }
});
