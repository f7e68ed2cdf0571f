//! Seed generator: writes the first inputs of the parsers' targets into `corpus/`, with the
//! project's own writers: `cargo run --example seeds` in this folder. Inputs that a fuzzer has
//! found are stored with them.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use pollux_mempool::Burst;
use pollux_pmd::net::{Checksum, MacAddr, Responder, UDP_HEADERS, UdpEndpoint, UdpTemplate};
use pollux_pmd::{PortConfig, Registry, StartedPort};
use pollux_pmd_fuzz::pool;
use pollux_rdma::exchange::perftest::Keys;
use pollux_rdma::exchange::{Description, Offered, pingpong};
use pollux_rdma::{Access, Key, Mtu, Psn, QpAddress, QpKind, QpNumber, RemoteBuffer};

const PEER: UdpEndpoint = end(1);
const PORT: UdpEndpoint = end(2);

const fn end(last: u8) -> UdpEndpoint {
    UdpEndpoint {
        mac: MacAddr([2, 0, 0, 0, 0, last]),
        socket: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, last), 1000),
    }
}

/// A spec of each driver with its options, as far as they can be combined.
const SPECS: [&str; 9] = [
    "loopback",
    "null:size=1500",
    "pcap:rx=a.pcap,tx=b.pcapng,pace=recorded,loop=3",
    "af_packet:eth0,frame=9018,ring=64,fanout=queue,timestamps=hardware,promisc=on,\
     multicast=01:00:5e:00:00:01+01:00:5e:00:00:02,qdisc=off",
    "af_xdp:eth0,queue=1,ring=64,mode=copy,attach=skb,other=kernel,ports=58913-58928,\
     steer=58913:1+58914:0,wakeup=off,busy-poll=20,checksums=trust,promisc=on,multicast=all",
    "tap:pol0,mac=02:00:00:00:00:01,mtu=9000,up=on,persist=off",
    "unix:/run/a.sock,peer=/run/b.sock,mac=02:00:00:00:00:06,mtu=4200",
    "pci:0000:03:00.0,noiommu=off,vf_token=00112233-4455-6677-8899-aabbccddeeff,mtu=9000,\
     promisc=on,multicast=all,unicast=02:00:00:00:00:02,descriptors=legacy,vfs=2,\
     vf-macs=02:00:00:00:00:03+02:00:00:00:00:04,vf-vlans=7+8",
    "vhost-user:/path.sock,role=driver,server=on,queues=2,ring=256,packed=on,in-order=off,\
     mergeable=off,sealed=on,mac=02:00:00:00:00:05,mtu=1500",
];

fn save(target: &str, name: &str, bytes: &[u8]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target);
    fs::create_dir_all(&folder).expect("the folder");
    fs::write(folder.join(name), bytes).expect("the file");
}

fn datagram(payload: &[u8]) -> Vec<u8> {
    let mut frame = [&[0; UDP_HEADERS], payload].concat();
    let template = UdpTemplate::new(PEER, PORT);
    template.write(&mut frame, payload.len()).expect("room");
    frame
}

/// The datagram as a ping: RFC 792.
fn echo_request() -> Vec<u8> {
    let mut frame = datagram(b"ping");
    let (ip, icmp) = (14, 34);
    frame[ip + 9] = 1;
    frame[ip + 10..ip + 12].fill(0);
    frame[icmp..icmp + 8].copy_from_slice(&[8, 0, 0, 0, 0, 1, 0, 1]);
    for (start, end, field) in [(ip, icmp, ip + 10), (icmp, frame.len(), icmp + 2)] {
        let mut sum = Checksum::new();
        sum.add(&frame[start..end]);
        frame[field..field + 2].copy_from_slice(&sum.finish().to_be_bytes());
    }
    frame
}

fn frames() -> Vec<(&'static str, Vec<u8>)> {
    let mut arp = vec![0; 60];
    Responder::new(PEER.mac, *PEER.socket.ip())
        .request(*PORT.socket.ip(), &mut arp)
        .expect("room");
    let mut tagged = datagram(b"tagged");
    tagged.splice(12..12, [0x88, 0xa8, 0, 7, 0x81, 0, 0, 8]);
    let mut fragment = datagram(b"fragment");
    fragment[20] = 0x20;
    let mut v6 = vec![
        2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0,
    ];
    v6.extend([0, 12, 17, 64]);
    v6.extend([0xfd; 32]);
    v6.extend([0, 1, 0, 2, 0, 12]);
    let mut sum = Checksum::pseudo_v6([0xfd; 16].into(), [0xfd; 16].into(), 17, 12);
    sum.add(&[0, 1, 0, 2, 0, 12, 0, 0, 1, 2, 3, 4]);
    v6.extend(sum.finish_udp().to_be_bytes());
    v6.extend([1, 2, 3, 4]);
    vec![
        ("udp", datagram(b"payload")),
        ("empty", datagram(b"")),
        ("long", datagram(&[7; 200])),
        ("arp", arp),
        ("echo", echo_request()),
        ("tagged", tagged),
        ("fragment", fragment),
        ("v6", v6),
    ]
}

/// The frames as this crate's writer stores them.
fn pcapng() -> Vec<u8> {
    let path = std::env::temp_dir().join(format!("pollux-seeds-{}.pcapng", std::process::id()));
    let pool = pool(64, 512);
    let spec = format!("pcap:tx={}", path.display());
    let port = Registry::builtin().open(&spec).expect("a port");
    let config = PortConfig {
        rx_queues: 0,
        ..PortConfig::new(pool.clone())
    };
    let port = port.configure(config).expect("a port that sends");
    let StartedPort { port, rx, mut tx } = port.start().expect("a new file");
    let (mut cache, mut burst) = (pool.cache(16).expect("a cache"), Burst::<8>::new());
    for (_, frame) in frames().iter().take(3) {
        let mbuf = cache.alloc_from(frame).expect("a buffer");
        burst.push(mbuf).expect("room");
    }
    tx[0].tx(&mut cache, &mut burst);
    port.stop(rx, tx).expect("a whole file");
    let bytes = fs::read(&path).expect("the file");
    fs::remove_file(path).expect("nothing left behind");
    bytes
}

/// The frames in the older format, in either byte order and unit of time.
fn pcap(magic: [u8; 4], number: fn(u32) -> [u8; 4]) -> Vec<u8> {
    let mut bytes = magic.to_vec();
    let versions = if number(1)[0] == 1 {
        [2, 0, 4, 0]
    } else {
        [0, 2, 0, 4]
    };
    bytes.extend(versions);
    bytes.extend([0, 0, 65535, 1].map(number).concat());
    for (i, (_, frame)) in (0..).zip(frames().iter().take(3)) {
        let len = frame.len() as u32;
        bytes.extend([1_700_000_000, i, len, len].map(number).concat());
        bytes.extend(frame);
    }
    bytes
}

/// All that a peer says, by the way of the exchange: see the target.
fn exchanges() -> Vec<(&'static str, u8, Vec<u8>)> {
    let qp = QpAddress {
        number: QpNumber::new(17).expect("24 bits"),
        psn: Psn::new(0x12_3456),
        ip: Ipv4Addr::new(192, 168, 77, 2),
        mac: None,
    };
    let buffer = RemoteBuffer {
        address: 0x7f12_3456_7000,
        key: Key(0x0102_0304),
    };
    let description = Description {
        qp,
        kind: QpKind::Unreliable,
        mtu: Mtu::B4096,
        buffers: vec![Offered {
            name: "images".into(),
            buffer,
            bytes: 1 << 22,
            access: Access::ALL,
        }],
    };
    let keys = Keys {
        qp,
        reads: 16,
        buffer,
    };
    let (text, packed) = (keys.to_text().repeat(4), keys.to_packed().repeat(6));
    let begin = b"6.06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0\0\x405\0".as_slice();
    let pingpong = pingpong::to_text(&qp);
    let json = description.to_json().into_bytes();
    vec![
        ("pingpong-client", 0, pingpong.to_vec()),
        ("pingpong-server", 4, [&pingpong[..], b"done\0"].concat()),
        ("json", 8, [&json[..], b"\n"].concat()),
        ("send_lat", 7 << 2, [begin, &text, b"done\0"].concat()),
        (
            "write_bw",
            8 << 2 | 1,
            [begin, &text, &[0; 40], &text].concat(),
        ),
        ("write_bw-R", 8 << 2 | 2, [begin, &packed].concat()),
    ]
}

fn main() {
    for (name, way, said) in exchanges() {
        save("exchange", name, &[&[way, 64], &said[..]].concat());
    }
    for (name, frame) in frames() {
        save("parse", name, &[&[7, 128], &frame[..]].concat());
    }
    let nanoseconds = pcap(0xa1b2_3c4d_u32.to_le_bytes(), u32::to_le_bytes);
    let microseconds = pcap(0xa1b2_c3d4_u32.to_be_bytes(), u32::to_be_bytes);
    for (name, capture) in [
        ("pcapng", pcapng()),
        ("nanoseconds", nanoseconds),
        ("microseconds", microseconds),
    ] {
        save("pcap", name, &[&[1], &capture[..]].concat());
    }
    let registry = Registry::builtin();
    for (i, spec) in SPECS.iter().enumerate() {
        registry.check(spec).expect("a spec");
        save("port_spec", &format!("spec{i}"), spec.as_bytes());
    }
    let records = [[4, 0, 0, 0, 9, 0, 1, 0, 1, 0, 0, 0, 5, 0, 0, 0], [1; 16]].concat();
    save("clop_payloads", "records", &[&[0], &records[..]].concat());
    save("clop_payloads", "bare", &[&[9], &records[..]].concat());
    // Kind, place and length of each fragment: in order, from the back, and overlapping.
    let [first, last] = [[0, 0, 0x20, 4], [0, 4, 0, 4]];
    save("reassemble", "whole", &[first, last].concat());
    save("reassemble", "reversed", &[last, first].concat());
    save("reassemble", "overlap", &[first, [0, 2, 0x20, 4], last].concat());
}
