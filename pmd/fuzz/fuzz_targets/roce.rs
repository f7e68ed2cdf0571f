//! Packets for a RoCEv2 endpoint: any opcode, fields near the right ones, right and wrong ICRCs, between
//! requests of its own program.
//!
//! Memory that was not granted stays as it is, every frame is delivered or dropped for a cause, and all
//! buffers come back.
#![no_main]

use std::net::Ipv4Addr;

use libfuzzer_sys::fuzz_target;
use pollux_mempool::region::{MemoryRegion, PageSize};
use pollux_mempool::time::Ns;
use pollux_mempool::{Burst, Mempool};
use pollux_pmd::net::roce::{Bth, Opcode, Packet, icrc};
use pollux_pmd::net::{MacAddr, UDP_HEADERS, UdpChecksum, UdpEndpoint, UdpTemplate};
use pollux_pmd::{Ledger, PortConfig, Registry, StartedPort};
use pollux_pmd_fuzz::{Input, assert_full, pool};
use pollux_rdma::roce::{QpIdentity, RoceEndpoint, RoceOptions};
use pollux_rdma::{
    Access, Get, Key, Memory, Mtu, PathOptions, Payload, Psn, Put, QpAddress, QpKind, QpNumber,
    QpOptions, Receive, RemoteBuffer,
};

const MACS: [MacAddr; 2] = [MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2])];
const IPS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
const KEY: u32 = 0x1234;
const ADDRESS: u64 = 0x1_0000;
const BYTES: usize = 4096;
/// First numbers of the peer and of the endpoint.
const PSNS: [u32; 2] = [0xff_fffd, 0xff_fffe];

thread_local! {
    static POOL: Mempool = pool(256, 1500);
    // Granted, and not.
    static MEMORIES: [Memory; 2] = [(); 2].map(|()| {
        let region = MemoryRegion::builder(BYTES).pages(PageSize::Kib4);
        Memory::new(region.build().expect("memory for a page"))
    });
}

fn number(number: u32) -> QpNumber {
    QpNumber::new(number).expect("a number of 24 bits")
}

/// A frame of the peer.
fn frame(input: &mut Input<'_>) -> Vec<u8> {
    let (code, flags) = (input.u8(), input.u8());
    let opcode = Opcode::from_code(code).unwrap_or(Opcode::RcWriteOnly);
    let first = PSNS[usize::from(flags & 1)];
    let psn = first.wrapping_add(u32::from(input.u8() % 16));
    let qp = 0x11 + u32::from(flags >> 1 & 3) % 3;
    let mut bth = Bth::new(opcode, qp, psn).with_ack_request(flags & 8 != 0);
    bth.opcode = code;
    bth.flags ^= if flags & 0x10 != 0 { input.u8() } else { 0 };
    let mut packet = bytes_of(&bth).to_vec();
    if opcode.has_reth() && flags & 0x20 == 0 {
        packet.extend((ADDRESS + u64::from(input.u16() % 4200)).to_be_bytes());
        packet.extend(KEY.to_be_bytes());
        packet.extend(u32::from(input.u16() % 1024).to_be_bytes());
    }
    let len = usize::from(input.u16() % 600);
    let data = input.bytes(len);
    packet.extend(data);
    // As long as the fuzzer says, whatever its bytes are.
    packet.resize(packet.len() + len - data.len(), 0x77);
    if flags & 0x40 == 0 {
        packet.resize(packet.len().next_multiple_of(4), 0);
    }
    packet.extend([0; 4]);
    let end = |n: usize| UdpEndpoint {
        mac: MACS[n],
        socket: std::net::SocketAddrV4::new(IPS[n], 4791),
    };
    let mut frame = vec![0; UDP_HEADERS];
    frame.extend(&packet);
    let template = UdpTemplate::new(end(1), end(0))
        .with_checksum(UdpChecksum::Absent)
        .with_service(input.u8());
    assert!(template.write(&mut frame, packet.len()).is_some());
    if flags & 0x80 == 0 {
        let _ = icrc::write(&mut frame[14..]);
    }
    let _ = Packet::parse(&frame[UDP_HEADERS..]);
    frame
}

fn bytes_of(bth: &Bth) -> [u8; 12] {
    let mut bytes = [bth.opcode, bth.flags, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes[2..4].copy_from_slice(&bth.pkey.get().to_be_bytes());
    bytes[4..8].copy_from_slice(&bth.congestion_qp.get().to_be_bytes());
    bytes[8..12].copy_from_slice(&bth.ack_psn.get().to_be_bytes());
    bytes
}

fn run(input: &mut Input<'_>, pool: &Mempool, memories: &[Memory; 2]) {
    let config = PortConfig::new(pool.clone())
        .rx_queues(2)
        .tx_queues(2)
        .ring(64);
    let port = Registry::builtin()
        .open("loopback")
        .and_then(|port| port.configure(config));
    let port = port.expect("a loopback port");
    let capabilities = port.capabilities();
    let StartedPort {
        port,
        mut rx,
        mut tx,
    } = port.start().expect("a started port");
    let (mut peer_tx, tx0) = (tx.pop().expect("a queue"), tx.pop().expect("a queue"));
    let (rx1, mut peer_rx) = (rx.pop().expect("a queue"), rx.pop().expect("a queue"));
    let options = RoceOptions {
        mac: Some(MACS[0]),
        queue_pairs: 2,
        ..RoceOptions::new(IPS[0])
    };
    let cache = || pool.cache(32).expect("a cache");
    let endpoint = RoceEndpoint::new(&options, &capabilities, (rx1, tx0), cache());
    let (control, mut poll) = endpoint.expect("an endpoint");
    let mut ledger = Ledger::new();
    ledger.add("port", poll.rx_tally());
    ledger.add("endpoint", poll.tally());
    let mut endpoint = control.endpoint();
    for memory in memories {
        memory.write(0, &[0x55; BYTES]).expect("a page");
    }
    let at = RemoteBuffer {
        address: ADDRESS,
        key: Key(KEY),
    };
    let granted = control.register_buffer_at(&memories[0], 0..BYTES, Access::ALL, at);
    let granted = granted.expect("a buffer");
    let secret = endpoint.register_buffer(&memories[1], 0..BYTES, Access::LOCAL);
    let secret = secret.expect("a buffer");
    let mut qps = [QpKind::Reliable, QpKind::Unreliable].map(|kind| {
        let options = QpOptions {
            kind,
            receives: 4,
            events: 16,
        };
        let identity = QpIdentity {
            number: number(0x11 + kind as u32),
            psn: Psn::new(PSNS[1]),
        };
        let qp = control
            .create_queue_pair_as(&options, identity)
            .expect("a queue pair");
        let peer = QpAddress {
            number: number(0x22),
            psn: Psn::new(PSNS[0]),
            ip: IPS[1],
            mac: Some(MACS[1]),
        };
        let path = PathOptions {
            mtu: Mtu::B256,
            timeout: 2,
            ..PathOptions::default()
        };
        endpoint.connect(&qp, &peer, &path).expect("a connection");
        qp
    });
    let mut peer_cache = cache();
    let mut now = Ns(0);
    while !input.is_empty() {
        let what = input.u8();
        let qp = &mut qps[usize::from(what >> 3 & 1)];
        let local = granted.part(0, u32::from(what) * 4);
        match what % 8 {
            0 => {
                let payload = Payload::Indirect(secret.part(0, u32::from(what) * 4));
                let (cookie, to, immediate) = (0, granted.remote(), None);
                let _ = qp.put(Put {
                    cookie,
                    payload,
                    to,
                    immediate,
                });
            }
            1 => {
                let (cookie, from) = (0, granted.remote());
                let _ = qp.get(Get {
                    cookie,
                    from,
                    to: local,
                });
            }
            2 => {
                let _ = qp.post_receive(Receive {
                    cookie: 0,
                    to: local,
                });
            }
            3 => while qp.poll_event().is_some() {},
            4 => now.0 += 20_000,
            _ => {
                let mut burst = Burst::<1>::new();
                let mbuf = peer_cache.alloc_from(&frame(input)).expect("a buffer");
                drop(burst.push(mbuf));
                peer_tx.tx(&mut peer_cache, &mut burst);
                peer_cache.free_burst(&mut burst);
            }
        }
        qp.doorbell();
        now.0 += 1000;
        poll.poll(now);
        let mut burst = Burst::<64>::new();
        peer_rx.rx(&mut peer_cache, &mut burst);
        for sent in burst.iter() {
            assert!(icrc::is_valid(&sent.data()[14..]));
        }
        peer_cache.free_burst(&mut burst);
    }
    let mut there = [0; BYTES];
    memories[1].read(0, &mut there).expect("a page");
    assert!(there.iter().all(|&byte| byte == 0x55));
    ledger.check().expect("a balance");
    drop((qps, granted, secret, peer_cache));
    let (rx1, tx0) = poll.into_queues();
    let tx = tx0.into_iter().chain([peer_tx]).collect();
    port.stop(vec![peer_rx, rx1], tx).expect("a stopped port");
}

fuzz_target!(|data: &[u8]| {
    POOL.with(|pool| {
        MEMORIES.with(|memories| run(&mut Input(data), pool, memories));
        assert_full(pool);
    });
});
