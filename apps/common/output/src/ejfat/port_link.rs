//! A port as the link: the trigger's own drivers, without the kernel's network stack.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::{Duration, Instant};

use pollux_mempool::{Burst, Mempool, PoolCache, PoolConfig};
use pollux_pmd::endpoint::{Classifier, Neighbour, PortEndpoint};
use pollux_pmd::ledger::SentView;
use pollux_pmd::net::{MacAddr, ParseOptions, Parsed, UDP_HEADERS, UdpTemplate};
use pollux_pmd::port::{PortConfig, Probed, Started, StartedPort};
use pollux_pmd::{Port, RxQueue, TxQueue};

use super::flight::Flight;
use super::link::{Link, Outcomes, Peer, Sent};
use crate::kind::RunContext;

/// Source port of the datagrams.
const FROM: u16 = 19_522;

/// Buffers of the pool, and those that the link keeps.
const BUFFERS: usize = 2048;
const CACHE: usize = 64;

/// Header of Ethernet, which an MTU does not include.
const ETHERNET: usize = 14;

/// Interval of ARP requests.
const REQUEST: Duration = Duration::from_millis(100);

/// Interval at which the state of the link is read: the kernel counts frames on a link that is down as
/// sent.
const LOOK: Duration = Duration::from_millis(10);

/// Time of an obstacle before a warning, and the interval of further ones.
const GRACE: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::from_mins(1);

/// Time of an obstacle for which a replay waits: it could wait for ever.
const GIVEN_UP: Duration = Duration::from_secs(10);

/// Hosts that datagrams go to.
pub(super) struct Hosts {
    /// The load balancer, or a receiver.
    pub(super) data: SocketAddr,
    /// Its control plane.
    pub(super) control: Option<SocketAddr>,
    /// Station that frames go to, if it is not to be resolved.
    pub(super) mac: Option<MacAddr>,
}

/// One host that datagrams go to.
struct Route {
    neighbour: Neighbour,
    /// Present once it is resolved.
    headers: Option<UdpTemplate>,
}

/// Why no datagrams can leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Obstacle {
    /// The device of the port has disappeared, for good.
    Gone,
    /// The link is down.
    Down,
    /// The host has not answered ARP.
    Unresolved,
}

/// A started port.
pub(super) struct PortLink {
    port: Port<Started>,
    /// State of its link, and the time at which it is read again.
    state: pollux_pmd::driver::Link,
    look: Instant,
    /// Counters of the transmit queue, and what they say of events.
    sent: Option<SentView>,
    flight: Flight,
    rx: Vec<RxQueue>,
    endpoint: [PortEndpoint; 1],
    classifier: Classifier,
    data: Route,
    control: Option<Route>,
    cache: PoolCache,
    requested: Instant,
    /// Address of the host.
    ip: IpAddr,
    /// Start of the present obstacle, if there is one.
    since: Option<Instant>,
    /// Time of the next warning about it.
    warning: Instant,
    /// The run waits for its outputs.
    recorded: bool,
}

impl PortLink {
    /// Opens and starts the port `spec`, for datagrams of up to `datagram` bytes.
    pub(super) fn new(
        spec: &str,
        run: &RunContext<'_>,
        hosts: &Hosts,
        datagram: usize,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let port = run.ports.open(spec)?;
        Self::over(port, (run.ip, run.recorded), hosts, datagram)
    }

    /// Starts a port.
    pub(super) fn over(
        port: Port<Probed>,
        (ip, recorded): (Ipv4Addr, bool),
        hosts: &Hosts,
        datagram: usize,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let spec = port.spec().to_owned();
        let offered = port.capabilities();
        if offered.max_tx_queues == 0 {
            return Err(format!("port {spec} cannot send; a capture needs tx=FILE").into());
        }
        let frame = UDP_HEADERS + datagram;
        let longest = offered.max_frame;
        if frame > longest {
            let most = longest.saturating_sub(ETHERNET);
            return Err(format!(
                "port {spec} sends frames of at most {longest} bytes: take mtu={most} or less"
            )
            .into());
        }
        let pool = Mempool::new(PoolConfig {
            buffers: BUFFERS,
            data_room: frame,
            ..PoolConfig::default()
        })?;
        let hears = offered.max_rx_queues > 0 && !offered.recorded;
        let port = port.configure(PortConfig {
            rx_queues: offered.max_rx_queues.min(1),
            tx_queues: 1,
            ..PortConfig::new(pool.clone())
        })?;
        // Where no answer to ARP can come, as in a capture, frames go to all stations.
        let mac = match hosts.mac {
            None if !hears => Some(MacAddr::BROADCAST),
            mac => mac,
        };
        let from = SocketAddrV4::new(ip, FROM);
        let route = |to: SocketAddr| match to {
            SocketAddr::V4(to) => Ok(Route {
                neighbour: Neighbour::new(to, from, mac, 0),
                headers: None,
            }),
            SocketAddr::V6(to) => Err(format!("port {spec} does not send to {to}")),
        };
        let data = route(hosts.data)?;
        let control = hosts.control.map(route).transpose()?;
        let cache = pool.cache(CACHE)?;
        let StartedPort { port, rx, mut tx } = port.start()?;
        let now = Instant::now();
        let tx = tx.pop();
        let mut link = Self {
            state: port.link(),
            look: now + LOOK,
            sent: tx.as_ref().map(TxQueue::sent),
            flight: Flight::default(),
            port,
            rx,
            endpoint: [PortEndpoint::new(&offered, tx, ip)],
            classifier: Classifier::new(ParseOptions::default()),
            data,
            control,
            cache,
            requested: now,
            ip: hosts.data.ip(),
            since: Some(now),
            warning: now + GRACE,
            recorded,
        };
        link.resolve(true);
        link.note(now);
        Ok(link)
    }

    fn obstacle(&self) -> Option<Obstacle> {
        if self.state.gone {
            Some(Obstacle::Gone)
        } else if !self.state.up {
            Some(Obstacle::Down)
        } else if self.data.headers.is_none() {
            Some(Obstacle::Unresolved)
        } else {
            None
        }
    }

    /// The obstacle that is not waited for: events fail until it is gone.
    fn hopeless(&self) -> Option<Obstacle> {
        let is_long = || self.since.is_some_and(|since| since.elapsed() >= GIVEN_UP);
        let is_hopeless = |why: &_| *why == Obstacle::Gone || self.recorded && is_long();
        self.obstacle().filter(is_hopeless)
    }

    /// Why an event fails.
    fn reason(&self, why: Obstacle) -> String {
        let (ip, port) = (self.ip, self.port.spec());
        match why {
            Obstacle::Gone => format!("the device of {port} is gone"),
            Obstacle::Down => format!("the link of {port} is down"),
            Obstacle::Unresolved => format!("no host has answered ARP for {ip} on {port}"),
        }
    }

    /// Notes the time of an obstacle, and warns of it: events wait meanwhile.
    fn note(&mut self, now: Instant) {
        let Some(why) = self.obstacle() else {
            self.since = None;
            return;
        };
        if self.since.is_none() {
            (self.since, self.warning) = (Some(now), now + GRACE);
        }
        if now < self.warning {
            return;
        }
        self.warning = now + AGAIN;
        let (ip, port) = (self.ip, self.port.spec());
        match why {
            // The events that fail are reported.
            Obstacle::Gone => {}
            Obstacle::Down => tracing::warn!(
                "the link of {port} is down: events for {ip} wait; check the cable and the other end"
            ),
            Obstacle::Unresolved => tracing::warn!(
                "no host has answered ARP for {ip} on {port}: check the address and that the link is \
                 up, or give mac= of the host or of the router to it"
            ),
        }
    }

    /// Takes over routes that have changed, and requests those that are unknown.
    fn resolve(&mut self, request: bool) {
        for route in std::iter::once(&mut self.data).chain(&mut self.control) {
            if let Some(found) = route.neighbour.take_route(&self.endpoint) {
                route.headers = Some(found.headers);
            }
            if let Some(ip) = route.neighbour.unresolved().filter(|_| request)
                && self.endpoint[0].request(ip, &mut self.cache)
            {
                self.flight.took_other();
            }
        }
    }
}

impl Link for PortLink {
    fn is_ready(&self) -> bool {
        self.obstacle().is_none() || self.hopeless().is_some()
    }

    fn send(&mut self, to: Peer, datagram: &[u8]) -> Sent {
        let route = match to {
            Peer::Data => Some(&self.data),
            Peer::Control => self.control.as_ref(),
        };
        let headers = route.and_then(|route| route.headers.as_ref());
        match self.obstacle() {
            Some(_) if to == Peer::Data => {
                let failed = |why| Sent::Failed(self.reason(why));
                return self.hopeless().map_or(Sent::Full, failed);
            }
            Some(Obstacle::Gone | Obstacle::Down) => return Sent::Full,
            _ => {}
        }
        let (Some(headers), Some(tx)) = (headers, self.endpoint[0].tx()) else {
            return Sent::Full;
        };
        let Some(mut mbuf) = self.cache.alloc() else {
            return Sent::Full;
        };
        let len = UDP_HEADERS + datagram.len();
        let Some(frame) = mbuf.append(len) else {
            return Sent::Failed(format!("a frame of {len} bytes does not fit a buffer"));
        };
        frame[UDP_HEADERS..].copy_from_slice(datagram);
        if headers.write(frame, datagram.len()).is_none() {
            return Sent::Failed(format!("{} bytes are too many", datagram.len()));
        }
        let mut burst = Burst::<1>::new();
        // It fits.
        drop(burst.push(mbuf));
        tx.tx(&mut self.cache, &mut burst);
        if burst.is_empty() {
            match to {
                Peer::Data => self.flight.took(),
                Peer::Control => self.flight.took_other(),
            }
            return Sent::Yes;
        }
        self.cache.free_burst(&mut burst);
        Sent::Full
    }

    fn poll(&mut self) -> bool {
        let mut burst = Burst::<32>::new();
        for rx in &mut self.rx {
            rx.rx(&mut self.cache, &mut burst);
            burst.take_all(|mbuf| {
                if let Ok(Parsed::Arp | Parsed::IcmpEcho) = self.classifier.classify(&mbuf) {
                    for route in std::iter::once(&mut self.data).chain(&mut self.control) {
                        route.neighbour.observe_arp(mbuf.data(), 0);
                    }
                    if self.endpoint[0].reply(&mbuf, &mut self.cache) {
                        self.flight.took_other();
                    }
                }
                self.cache.free(mbuf);
            });
        }
        let now = Instant::now();
        if now >= self.look {
            (self.state, self.look) = (self.port.link(), now + LOOK);
        }
        let request = now.duration_since(self.requested) >= REQUEST;
        if request {
            self.requested = now;
        }
        self.resolve(request);
        self.note(now);
        // Sends frames that the kernel has refused, and completes those that were sent.
        if self.flight.is_waiting()
            && let Some(tx) = self.endpoint[0].tx()
        {
            tx.tx(&mut self.cache, &mut Burst::<1>::new());
        }
        false
    }

    fn end_event(&mut self, is_whole: bool) -> bool {
        self.flight.end(is_whole);
        true
    }

    fn outcomes(&mut self) -> Outcomes {
        let sent = self.sent.as_ref();
        sent.map_or_else(Outcomes::default, |sent| {
            self.flight.settle(sent.packets(), sent.errors())
        })
    }

    fn close(self: Box<Self>) -> (Outcomes, Result<(), String>) {
        let Self {
            port,
            rx,
            endpoint,
            sent,
            flight,
            ..
        } = *self;
        let tx = endpoint.into_iter().filter_map(PortEndpoint::into_tx);
        let stopped = port.stop(rx, tx.collect());
        let counts = sent.map_or((0, 0), |sent| (sent.packets(), sent.errors()));
        let outcomes = flight.finish(counts.0, counts.1);
        (
            outcomes,
            stopped.map(drop).map_err(|error| error.to_string()),
        )
    }
}

#[cfg(test)]
mod tests;
