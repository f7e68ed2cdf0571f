//! A port as the link: the trigger's own drivers, without the kernel's network stack.

use std::net::{IpAddr, SocketAddr, SocketAddrV4};
use std::time::{Duration, Instant};

use pollux_mempool::{Burst, Mempool, PoolCache, PoolConfig};
use pollux_pmd::endpoint::{Classifier, Neighbour, PortEndpoint};
use pollux_pmd::net::{MacAddr, ParseOptions, Parsed, UDP_HEADERS, UdpTemplate};
use pollux_pmd::port::{PortConfig, Started, StartedPort};
use pollux_pmd::{Port, RxQueue};

use super::link::{Link, Peer, Sent};
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

/// Time without an answer to ARP before a warning, and the interval of further ones.
const GRACE: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::from_mins(1);

/// Time without an answer to ARP for which a replay waits: it could wait for ever.
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

/// A started port.
pub(super) struct PortLink {
    port: Port<Started>,
    rx: Vec<RxQueue>,
    endpoint: [PortEndpoint; 1],
    classifier: Classifier,
    data: Route,
    control: Option<Route>,
    cache: PoolCache,
    requested: Instant,
    opened: Instant,
    /// Address of the host.
    ip: IpAddr,
    /// Time of the next warning that the host does not answer.
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
        let from = SocketAddrV4::new(run.ip, FROM);
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
        let mut link = Self {
            port,
            rx,
            endpoint: [PortEndpoint::new(&offered, tx.pop(), run.ip)],
            classifier: Classifier::new(ParseOptions::default()),
            data,
            control,
            cache,
            requested: now,
            opened: now,
            ip: hosts.data.ip(),
            warning: now + GRACE,
            recorded: run.recorded,
        };
        link.resolve(true);
        Ok(link)
    }

    /// Whether no answer to ARP has come for so long that a replay waits no longer.
    fn has_given_up(&self) -> bool {
        self.recorded && self.data.headers.is_none() && self.opened.elapsed() >= GIVEN_UP
    }

    fn unheard(&self) -> String {
        let (ip, port) = (self.ip, self.port.spec());
        format!("no host has answered ARP for {ip} on {port}")
    }

    /// Warns while the host does not answer: events wait meanwhile.
    fn warn(&mut self, now: Instant) {
        if self.data.headers.is_none() && now >= self.warning {
            self.warning = now + AGAIN;
            let (ip, port) = (self.ip, self.port.spec());
            tracing::warn!(
                "no host has answered ARP for {ip} on {port}: check the address and that the link is \
                 up, or give mac= of the host or of the router to it"
            );
        }
    }

    /// Takes over routes that have changed, and requests those that are unknown.
    fn resolve(&mut self, request: bool) {
        for route in std::iter::once(&mut self.data).chain(&mut self.control) {
            if let Some(found) = route.neighbour.take_route(&self.endpoint) {
                route.headers = Some(found.headers);
            }
            if let Some(ip) = route.neighbour.unresolved().filter(|_| request) {
                self.endpoint[0].request(ip, &mut self.cache);
            }
        }
    }
}

impl Link for PortLink {
    fn is_ready(&self) -> bool {
        self.data.headers.is_some() || self.has_given_up()
    }

    fn send(&mut self, to: Peer, datagram: &[u8]) -> Sent {
        let route = match to {
            Peer::Data => Some(&self.data),
            Peer::Control => self.control.as_ref(),
        };
        let headers = route.and_then(|route| route.headers.as_ref());
        if to == Peer::Data && headers.is_none() && self.has_given_up() {
            return Sent::Failed(self.unheard());
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
                    self.endpoint[0].reply(&mbuf, &mut self.cache);
                }
                self.cache.free(mbuf);
            });
        }
        let request = self.requested.elapsed() >= REQUEST;
        if request {
            self.requested = Instant::now();
            self.endpoint[0].retry(&mut self.cache);
        }
        self.resolve(request);
        self.warn(Instant::now());
        false
    }

    fn close(self: Box<Self>) -> Result<(), String> {
        let Self {
            port, rx, endpoint, ..
        } = *self;
        let tx = endpoint.into_iter().filter_map(PortEndpoint::into_tx);
        let stopped = port.stop(rx, tx.collect());
        stopped.map(drop).map_err(|error| error.to_string())
    }
}
