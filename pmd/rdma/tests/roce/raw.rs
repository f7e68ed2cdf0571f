//! A peer made of bytes: packets are built and read by offsets, with an ICRC of their own.

use pollux_mempool::time::Ns;
use pollux_mempool::{Burst, PoolCache};
use pollux_pmd::{RxQueue, TxQueue};
use pollux_rdma::{Access, Buffer, Event, Memory, PathOptions, QpKind, QueuePair, RemoteBuffer};

use crate::rig::{Host, IPS, Link, MACS, address, link, memory};

/// Number, first sequence number and kind of the endpoint's queue pair, and those of the peer's.
pub(crate) const OWN: (u32, u32) = (0x11, 500);
pub(crate) const PEER: (u32, u32) = (0x22, 100);
/// Key and address of the endpoint's memory.
pub(crate) const KEY: u32 = 0x1234_5678;
pub(crate) const ADDRESS: u64 = 0x10_0000;
pub(crate) const BYTES: usize = 8192;

/// CRC32 of Ethernet, bit by bit.
fn crc32(bytes: impl IntoIterator<Item = u8>) -> u32 {
    let step = |crc: u32| crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
    let byte = |crc: u32, byte: u8| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc));
    !bytes.into_iter().fold(!0, byte)
}

/// ICRC of a frame with an IPv4 header of 20 bytes, without the ICRC.
pub(crate) fn icrc(frame: &[u8]) -> [u8; 4] {
    icrc_behind(frame, 20)
}

/// The same, with an IPv4 header of so many bytes.
pub(crate) fn icrc_behind(frame: &[u8], header: usize) -> [u8; 4] {
    let behind = 14 + header;
    let masked = |(at, &byte): (usize, &u8)| match at {
        15 | 22 | 24 | 25 => 0xff,
        _ if [behind + 6, behind + 7, behind + 12].contains(&at) => 0xff,
        _ => byte,
    };
    let frame = frame.iter().enumerate().skip(14).map(masked);
    crc32([0xff; 8].into_iter().chain(frame)).to_le_bytes()
}

/// A packet to be sent.
#[derive(Clone)]
pub(crate) struct Raw {
    pub(crate) opcode: u8,
    pub(crate) flags: u8,
    pub(crate) pkey: u16,
    pub(crate) qp: u32,
    pub(crate) ack: bool,
    pub(crate) psn: u32,
    pub(crate) rest: Vec<u8>,
    pub(crate) source: [u8; 4],
    pub(crate) service: u8,
}

impl Raw {
    pub(crate) fn new(opcode: u8, psn: u32) -> Self {
        Self {
            opcode,
            flags: 0,
            pkey: 0xffff,
            qp: OWN.0,
            ack: true,
            psn,
            rest: Vec::new(),
            source: IPS[1].octets(),
            service: 2,
        }
    }

    /// Adds an RDMA header.
    pub(crate) fn reth(mut self, address: u64, key: u32, len: u32) -> Self {
        self.rest.extend(address.to_be_bytes());
        self.rest.extend(key.to_be_bytes());
        self.rest.extend(len.to_be_bytes());
        self
    }

    /// Adds bytes and their padding.
    pub(crate) fn data(mut self, data: &[u8]) -> Self {
        self.rest.extend(data);
        let pad = data.len().wrapping_neg() % 4;
        self.rest.resize(self.rest.len() + pad, 0);
        self.flags |= (pad as u8) << 4;
        self
    }

    /// Adds an acknowledgement header.
    pub(crate) fn aeth(mut self, syndrome: u8) -> Self {
        self.rest.extend([syndrome, 0, 0, 0]);
        self
    }

    pub(crate) fn frame(&self) -> Vec<u8> {
        let len = 20 + 8 + 12 + self.rest.len() + 4;
        let mut frame = Vec::new();
        frame.extend(MACS[0].0);
        frame.extend(MACS[1].0);
        frame.extend([8, 0, 0x45, self.service]);
        frame.extend((len as u16).to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
        frame.extend(self.source);
        frame.extend(IPS[0].octets());
        let sum = pollux_pmd_testkit::frames::naive_checksum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        frame.extend(0xc000_u16.to_be_bytes());
        frame.extend(4791_u16.to_be_bytes());
        frame.extend((len as u16 - 20).to_be_bytes());
        frame.extend([0, 0, self.opcode, self.flags]);
        frame.extend(self.pkey.to_be_bytes());
        frame.extend(self.qp.to_be_bytes());
        frame.extend((self.psn | u32::from(self.ack) << 31).to_be_bytes());
        frame.extend(&self.rest);
        let icrc = icrc(&frame);
        frame.extend(icrc);
        frame
    }
}

/// A packet that the endpoint has sent.
#[derive(Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) opcode: u8,
    pub(crate) psn: u32,
    /// What is behind the BTH, without padding and ICRC.
    pub(crate) rest: Vec<u8>,
    pub(crate) ack: bool,
    pub(crate) backward: bool,
}

impl Seen {
    fn read(frame: &[u8]) -> Self {
        let word = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().unwrap());
        let (covered, crc) = frame.split_at(frame.len() - 4);
        assert_eq!(crc, icrc(covered));
        assert_eq!(frame[..12], [MACS[1].0, MACS[0].0].concat());
        assert_eq!(word(30), u32::from(IPS[1]));
        assert_eq!(word(34) as u16, 4791);
        let len = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
        assert_eq!(frame.len(), 14 + len);
        assert_eq!(word(46) & 0xff_ffff, PEER.0);
        assert_eq!(frame[43] & 0x4f, 0x40, "migrated, version 0");
        let pad = usize::from(frame[43] >> 4 & 3);
        Self {
            opcode: frame[42],
            psn: word(50) & 0xff_ffff,
            rest: covered[54..covered.len() - pad].to_vec(),
            ack: frame[50] & 0x80 != 0,
            backward: frame[46] & 0x40 != 0,
        }
    }

    /// An acknowledgement.
    pub(crate) fn ack(psn: u32, syndrome: u8) -> impl Fn(&Self) -> bool {
        move |seen| (seen.opcode, seen.psn, seen.rest[0]) == (0x11, psn, syndrome)
    }
}

/// An endpoint whose peer is the test.
pub(crate) struct Scene {
    pub(crate) host: Host,
    pub(crate) qp: QueuePair,
    pub(crate) memory: Memory,
    pub(crate) buffer: Buffer,
    pub(crate) now: Ns,
    link: Link,
    rx: RxQueue,
    tx: TxQueue,
    cache: PoolCache,
}

impl Scene {
    pub(crate) fn new(kind: QpKind, access: Access, path: &PathOptions) -> Self {
        let (link, [a, (rx, tx)]) = link(512);
        let mut host = Host::new(0, &link, a);
        let qp = host.queue_pair(kind, OWN.0, OWN.1);
        let peer = address(1, PEER.0, PEER.1);
        host.endpoint.connect(&qp, &peer, path).unwrap();
        let memory = memory(BYTES);
        memory.write(0, &[0x55; BYTES]).unwrap();
        let at = RemoteBuffer {
            address: ADDRESS,
            key: pollux_rdma::Key(KEY),
        };
        let buffer = host
            .control
            .register_buffer_at(&memory, 0..BYTES, access, at);
        let cache = link.pool.cache(64).unwrap();
        Self {
            host,
            qp,
            memory,
            buffer: buffer.unwrap(),
            now: Ns(0),
            link,
            rx,
            tx,
            cache,
        }
    }

    pub(crate) fn send_frame(&mut self, frame: &[u8]) {
        let mut burst = Burst::<1>::new();
        burst.push(self.cache.alloc_from(frame).unwrap()).unwrap();
        assert_eq!(self.tx.tx(&mut self.cache, &mut burst), 1);
    }

    /// Sends packets, lets the endpoint poll once, and returns what it has sent.
    pub(crate) fn exchange(&mut self, packets: &[Raw]) -> Vec<Seen> {
        for packet in packets {
            self.send_frame(&packet.frame());
        }
        self.poll()
    }

    /// One poll of the endpoint, a microsecond later.
    pub(crate) fn poll(&mut self) -> Vec<Seen> {
        self.now.0 += 1000;
        self.host.poll.poll(self.now);
        self.seen()
    }

    /// What the endpoint has sent.
    pub(crate) fn seen(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        loop {
            let mut burst = Burst::<32>::new();
            if self.rx.rx(&mut self.cache, &mut burst) == 0 {
                return seen;
            }
            seen.extend(burst.iter().map(|mbuf| Seen::read(mbuf.data())));
            self.cache.free_burst(&mut burst);
        }
    }

    /// The frames that the endpoint has sent, as they are.
    pub(crate) fn frames(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let mut burst = Burst::<32>::new();
        while self.rx.rx(&mut self.cache, &mut burst) > 0 {
            frames.extend(burst.iter().map(|mbuf| mbuf.data().to_vec()));
            self.cache.free_burst(&mut burst);
        }
        frames
    }

    pub(crate) fn bytes(&self, at: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.memory.read(at, &mut bytes).unwrap();
        bytes
    }

    /// Whether nothing has written the memory.
    pub(crate) fn is_untouched(&self) -> bool {
        self.bytes(0, BYTES).iter().all(|&byte| byte == 0x55)
    }

    pub(crate) fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.qp.poll_event()).collect()
    }

    /// Stops everything: the ledger balances and all buffers are back.
    pub(crate) fn stop(mut self) {
        self.seen();
        self.stop_unread();
    }

    /// The same, of packets that are for another MAC address.
    pub(crate) fn stop_unread(mut self) {
        self.frames();
        self.host.balance();
        drop((self.qp, self.cache));
        let own = self.host.poll.into_queues();
        self.link.stop([own, (self.rx, Some(self.tx))]);
    }
}
