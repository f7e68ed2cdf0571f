//! What the emulated boards send, as frames that a test can rearrange, and as files.

use std::fs::File;
use std::path::Path;

use pcap_file::pcapng::{Block, PcapNgReader};
use pollux_emulator::config::{Arrival, EmulatorConfig, Faults, Spill};
use pollux_emulator::link::PortLink;
use pollux_emulator::run::{EmulatorLoop, EmulatorReport};
use pollux_mempool::{Mempool, PoolConfig};
use pollux_na62::physics::model::{ModelConfig, Rings};
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::{PortConfig, Registry, StartedPort, TscClock};

use super::Folder;

/// A frame and when it was captured, in nanoseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) time: u64,
    pub(crate) bytes: Vec<u8>,
}

/// A run of the boards with few rings, so that a test build keeps up, at times that a test can
/// compute.
pub(crate) fn boards(events: u64) -> EmulatorConfig {
    EmulatorConfig {
        events,
        arrival: Arrival::Regular,
        ..EmulatorConfig::default()
    }
}

/// As [`boards`], in spills of 5 ms with so many milliseconds between them.
pub(crate) fn spills(events: u64, gap_ms: u32) -> EmulatorConfig {
    EmulatorConfig {
        spill: Spill {
            length_ms: 5,
            gap_ms,
            restart_sequence: true,
        },
        ..boards(events)
    }
}

/// One ring in every event.
pub(crate) fn single_rings(events: u64) -> EmulatorConfig {
    let physics = ModelConfig {
        rings: Rings::Fixed(1),
        ..ModelConfig::default()
    };
    EmulatorConfig {
        physics,
        ..boards(events)
    }
}

/// Boards whose frames come so often that one which comes behind its successor is still in time
/// for its events (160 us, where events wait 300 us).
pub(crate) fn faulty_boards(events: u64, faults: Faults) -> EmulatorConfig {
    EmulatorConfig {
        events_per_frame: 16,
        faults,
        ..boards(events)
    }
}

/// Has the emulator write a capture.
pub(crate) fn record(config: &EmulatorConfig, path: &Path) -> EmulatorReport {
    send(config, &format!("pcap:tx={}", path.display()))
}

/// Has the emulator send to a port.
pub(crate) fn send(config: &EmulatorConfig, port: &str) -> EmulatorReport {
    let pool = Mempool::new(PoolConfig {
        buffers: 1024,
        ..PoolConfig::default()
    })
    .unwrap();
    let port = Registry::builtin().open(port).unwrap();
    let port = port.configure(PortConfig {
        rx_queues: 0,
        ..PortConfig::new(pool.clone())
    });
    let StartedPort { port, rx, mut tx } = port.unwrap().start().unwrap();
    let cache = pool.cache(64).unwrap();
    let link = PortLink::new(config, tx.pop().unwrap(), None, cache, true).unwrap();
    let mut boards = EmulatorLoop::new(config, link, TscClock::get(), StopFlag::new()).unwrap();
    let report = boards.run();
    assert!(report.complete && report.frames_unsent == 0, "{report:?}");
    let (tx, _) = boards.into_link().into_queues();
    port.stop(rx, vec![tx]).unwrap();
    report
}

/// The frames of a run of the boards.
pub(crate) fn packets(config: &EmulatorConfig) -> (Vec<Packet>, EmulatorReport) {
    let folder = Folder::new();
    let path = folder.path("boards.pcapng");
    let report = record(config, &path);
    (read(&path), report)
}

/// Reads a pcapng file with the same resolution as the emulator's.
pub(crate) fn read(path: &Path) -> Vec<Packet> {
    let mut reader = PcapNgReader::new(File::open(path).unwrap()).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            let time = packet.timestamp.as_nanos() as u64;
            packets.push(Packet {
                time,
                bytes: packet.data.into_owned(),
            });
        }
    }
    packets
}

/// A classic capture with stamps in nanoseconds (draft-ietf-opsawg-pcap), byte by byte.
pub(crate) fn pcap(packets: &[Packet]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4d_u32, 2 | 4 << 16, 0, 0, 1 << 18, 1] {
        file.extend(word.to_le_bytes());
    }
    for Packet { time, bytes } in packets {
        let (seconds, nanoseconds) = (time / 1_000_000_000, time % 1_000_000_000);
        let len = bytes.len() as u32;
        for word in [seconds as u32, nanoseconds as u32, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(bytes);
    }
    file
}
