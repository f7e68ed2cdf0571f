//! Detectors with other pixels than 16 bits: captures whose packets are made here.

use std::fs;
use std::net::SocketAddrV4;

use pollux_images::formats::{Detector, EigerBits, EigerLink, Header, Layout, write_packet};
use pollux_mempool::{Burst, Mempool, PoolConfig};
use pollux_pmd::net::{MacAddr, UDP_HEADERS, UdpEndpoint, UdpTemplate};
use pollux_pmd::{PortConfig, Registry, StartedPort};

use crate::{json, program, succeed};

const FRAMES: u64 = 3;
const PORT: u16 = 50_001;

/// Bytes of a packet, which differ from those of others.
fn bytes(frame: u64, port: usize, packet: usize, len: usize) -> Vec<u8> {
    let seed = frame as usize * 7919 + port * 331 + packet * 31;
    (0..len).map(|n| (seed + n * 17 + (n >> 7)) as u8).collect()
}

/// Writes the packets of two ports to a capture; the images that they make up.
fn capture(layout: &Layout, path: &std::path::Path) -> Vec<u8> {
    let pool = Mempool::new(PoolConfig {
        buffers: 256,
        data_room: 9000,
        ..PoolConfig::default()
    });
    let pool = pool.unwrap();
    let port = Registry::builtin()
        .open(&format!("pcap:tx={}", path.display()))
        .unwrap();
    let rx_queues = port.capabilities().max_rx_queues.min(1);
    let config = PortConfig {
        rx_queues,
        ..PortConfig::new(pool.clone())
    };
    let StartedPort { port, rx, mut tx } = port.configure(config).unwrap().start().unwrap();
    let mut cache = pool.cache(32).unwrap();
    let mut images = Vec::new();
    let mut payload = vec![0; layout.payload_bytes()];
    for frame in 1..=FRAMES {
        for module in 0..layout.modules() {
            let end = |last: u8, port| UdpEndpoint {
                mac: MacAddr([2, 0, 0, 0, 0, last]),
                socket: SocketAddrV4::new([198, 18, 0, last].into(), port),
            };
            let to = UdpTemplate::new(end(2, 4000), end(1, PORT + module as u16));
            for packet in 0..layout.packets() {
                let pixels = bytes(frame, module, packet, layout.packet_bytes());
                let mut header = Header::new(Detector::Eiger);
                header.frame_number = frame.into();
                header.module_id = (100 + module as u16).into();
                header.packet_number = (packet as u32).into();
                write_packet(&header, &pixels, &mut payload).unwrap();
                images.extend(pixels);
                let mut mbuf = cache.alloc().unwrap();
                let to_send = mbuf.append(UDP_HEADERS + payload.len()).unwrap();
                to_send[UDP_HEADERS..].copy_from_slice(&payload);
                to.write(to_send, payload.len()).unwrap();
                let mut burst = Burst::<1>::new();
                assert!(burst.push(mbuf).is_ok());
                assert_eq!(tx[0].tx(&mut cache, &mut burst), 1);
            }
        }
    }
    port.stop(rx, tx).unwrap();
    images
}

/// Each image is the pixels of its packets, one behind the other.
#[test]
fn eiger_runs_with_every_whole_number_of_bytes_a_pixel() {
    for (name, bits, link) in [
        (8, EigerBits::Eight, EigerLink::TenGigabit),
        (32, EigerBits::ThirtyTwo, EigerLink::TenGigabit),
        (32, EigerBits::ThirtyTwo, EigerLink::OneGigabit),
        (16, EigerBits::Sixteen, EigerLink::OneGigabit),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = |file: &str| folder.path().join(file);
        let layout = Layout::eiger(2, bits, link).unwrap();
        let images = capture(&layout, &path("run.pcapng"));
        let gbit = if link == EigerLink::OneGigabit { 1 } else { 10 };
        let config = format!(
            "[detector]\nkind = \"eiger\"\nmodules = 2\ninterfaces = 1\nbits = {name}\nlink_gbit = {gbit}\ntimeout_us = 10000000\n\
             [[stage]]\nname = \"compress\"\n\
             [[receiver]]\nfile = \"{}\"\ntransfer = {{ name = \"all\" }}\n",
            path("all.raw").display()
        );
        fs::write(path("run.toml"), config).unwrap();
        let mut command = program();
        command
            .args(["--quiet", "--report"])
            .arg(path("report.json"));
        command.arg("--config").arg(path("run.toml"));
        command
            .arg("--port")
            .arg(format!("pcap:rx={}", path("run.pcapng").display()));
        succeed(&mut command);
        let report = json(&path("report.json"));
        assert_eq!(report["frames"]["complete"], FRAMES, "{report}");
        assert!(report["latency_us"]["compress"].is_object(), "{report}");
        assert!(
            fs::read(path("all.raw")).unwrap() == images,
            "{name} bits, {link:?}"
        );
    }
}
