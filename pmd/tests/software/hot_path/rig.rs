//! A sender of all kinds of frames, and a receiver with all receive components of this crate.

use std::net::{Ipv4Addr, SocketAddrV4};

use pollux_mempool::time::Ns;
use pollux_mempool::{Burst, Mbuf, PoolCache};
use pollux_pmd::event::{
    Clop, ClopConfig, ClopReader, ClopWriter, EventConsumer, EventProducer, EventQueue, Refused,
    RegionOptions,
};
use pollux_pmd::lcore::{JitterMeter, StopFlag};
use pollux_pmd::net::{
    MacAddr, ParseOptions, Parsed, Responder, UDP_HEADERS, UdpEndpoint, UdpTemplate, classify,
};
use pollux_pmd::stream::{Demux, DemuxBuilder, SequenceTracker, StreamId};
use pollux_pmd::{Cause, Clock, LatencyHistogram, RxQueue, Tally, TscClock, TxQueue};

const STREAMS: u16 = 4;

fn own(last: u8, port: u16) -> UdpEndpoint {
    UdpEndpoint {
        mac: MacAddr([2, 0, 0, 0, 0, last]),
        socket: SocketAddrV4::new([10, 0, 0, last].into(), port),
    }
}

/// The sender: datagrams of all streams, and all other kinds of frames.
pub(super) struct Sender {
    pub(super) tx: TxQueue,
    templates: [UdpTemplate; STREAMS as usize + 1],
    stranger: Responder,
    pub(super) n: u32,
}

impl Sender {
    pub(super) fn new(tx: TxQueue) -> Self {
        let template = |stream| UdpTemplate::new(own(1, 4000), own(2, 9000 + stream));
        Self {
            tx,
            templates: std::array::from_fn(|stream| template(stream as u16)),
            stranger: Responder::new(MacAddr([2, 0, 0, 0, 0, 1]), [10, 0, 0, 1].into()),
            n: 0,
        }
    }

    /// Writes the next frame: one of a stream, mostly in sequence.
    fn write(&mut self, mbuf: &mut Mbuf) {
        self.n += 1;
        let room = mbuf.append(1000).unwrap();
        let len = match self.n % 101 {
            // A request that gets a reply.
            7 => self.stranger.request([10, 0, 0, 2].into(), room).unwrap(),
            kind => {
                let payload = 4 + self.n as usize % 900;
                // The last template belongs to no stream.
                let template = &self.templates[self.n as usize % 5];
                let sequence = match kind {
                    11 => self.n / 5 + 3,
                    13 => (self.n / 5).wrapping_sub(2),
                    17 => self.n.wrapping_mul(0x9e37_79b9),
                    _ => self.n / 5,
                };
                room[UDP_HEADERS..UDP_HEADERS + 4].copy_from_slice(&sequence.to_be_bytes());
                let len = template.write(room, payload).unwrap();
                // Errors of the IP header, of the datagram, and of the type.
                match kind {
                    23 => room[25] ^= 1,
                    29 => room[UDP_HEADERS] ^= 1,
                    31 => room[12] ^= 1,
                    _ => {}
                }
                if kind == 37 { 20 } else { len }
            }
        };
        mbuf.truncate(len);
    }

    /// Sends up to `n` frames; those that do not fit return to the pool.
    pub(super) fn send(&mut self, cache: &mut PoolCache, n: usize) {
        let mut burst = Burst::<32>::new();
        cache.alloc_burst(&mut burst, n);
        for mbuf in burst.iter_mut() {
            self.write(mbuf);
        }
        self.tx.tx(cache, &mut burst);
        cache.free_burst(&mut burst);
    }
}

/// The receiver: all receive components of this crate.
pub(super) struct Receiver {
    pub(super) rx: RxQueue,
    pub(super) tally: Tally,
    demux: Demux,
    pub(super) trackers: [SequenceTracker; STREAMS as usize],
    responder: Responder,
    events: EventProducer,
    clops: Vec<ClopWriter>,
    clock: TscClock,
    jitter: JitterMeter,
    pub(super) times: LatencyHistogram,
    stop: StopFlag,
}

impl Receiver {
    /// One iteration of the loop; returns whether a frame arrived.
    pub(super) fn poll(&mut self, tx: &mut TxQueue, cache: &mut PoolCache) -> bool {
        let now = self.jitter.tick();
        let mut burst = Burst::<32>::new();
        let n = self.rx.rx_up_to(cache, &mut burst, 24);
        for mbuf in burst.iter() {
            let dropped = self.take(mbuf, tx, cache);
            match dropped {
                Some(cause) => self.tally.count_dropped(cause, 1),
                None => self.tally.count_delivered(1),
            }
            self.times
                .record(self.clock.to_ns(now.since(mbuf.arrival())).0);
        }
        if n % 7 == 6 {
            // The slow path back to the pool.
            burst.clear();
        }
        cache.free_burst(&mut burst);
        for clop in &mut self.clops {
            clop.poll(&mut self.events, now);
        }
        if n == 0 {
            self.clock.relax();
        }
        n > 0 && !self.stop.is_set()
    }

    fn take(&mut self, mbuf: &Mbuf, tx: &mut TxQueue, cache: &mut PoolCache) -> Option<Cause> {
        let udp = match classify(mbuf, &ParseOptions::default()) {
            Ok(Parsed::Udp(udp)) => udp,
            Ok(Parsed::Arp) => return self.reply(mbuf, tx, cache),
            Ok(_) => return Some(Cause::NotForUs),
            Err(cause) => return Some(cause),
        };
        let Some(StreamId(stream)) = self.demux.route(&udp) else {
            return Some(Cause::DemuxMiss);
        };
        let payload = udp.payload(mbuf.data());
        let sequence = u32::from_be_bytes(payload[..4].try_into().unwrap());
        self.trackers[usize::from(stream)].observe(sequence);
        let at = usize::from(udp.payload_offset);
        self.clops[usize::from(stream)]
            .append_frame(&mut self.events, udp.src_port, mbuf, at..at + payload.len())
            .err()
            .map(Refused::cause)
    }

    fn reply(&self, request: &Mbuf, tx: &mut TxQueue, cache: &mut PoolCache) -> Option<Cause> {
        let Some(mut mbuf) = cache.alloc() else {
            return Some(Cause::NotForUs);
        };
        let reply = mbuf.append(60).unwrap();
        let written = self.responder.reply(request.data(), reply);
        let mut burst = Burst::<1>::new();
        assert!(burst.push(mbuf).is_ok());
        tx.tx(cache, &mut burst);
        cache.free_burst(&mut burst);
        (written != Some(60)).then_some(Cause::NotForUs)
    }
}

/// Consumer of the announced buffers.
pub(super) struct Consumer {
    events: EventConsumer,
    readers: Vec<ClopReader>,
    pub(super) payloads: u64,
}

impl Consumer {
    pub(super) fn consume(&mut self) {
        while let Some(event) = self.events.poll() {
            let buffer = self.readers[usize::from(event.stream)]
                .accept(&event)
                .unwrap();
            self.payloads += buffer.payloads().map(Result::unwrap).count() as u64;
        }
    }
}

pub(super) fn receiver(rx: RxQueue) -> (Receiver, Consumer) {
    let clock = TscClock::get();
    let queue = EventQueue::new(16, &RegionOptions::default()).unwrap();
    let (events, announced) = queue.split();
    let clop = |stream| {
        let config = ClopConfig {
            stream,
            buffers: 4,
            size: 8192,
            timeout: Ns(10_000),
            ..ClopConfig::default()
        };
        Clop::new(&config, &clock).unwrap().split()
    };
    let (clops, readers) = (0..STREAMS).map(clop).unzip();
    let ports = |demux: DemuxBuilder, id| demux.port(9000 + id, StreamId(id));
    let receiver = Receiver {
        rx,
        tally: Tally::new(),
        demux: (0..STREAMS)
            .fold(DemuxBuilder::new(), ports)
            .build()
            .unwrap(),
        trackers: Default::default(),
        responder: Responder::new(MacAddr([2, 0, 0, 0, 0, 2]), Ipv4Addr::new(10, 0, 0, 2)),
        events,
        clops,
        clock,
        jitter: JitterMeter::new(clock),
        times: LatencyHistogram::new(),
        stop: StopFlag::new(),
    };
    let consumer = Consumer {
        events: announced,
        readers,
        payloads: 0,
    };
    (receiver, consumer)
}
