//! Packets from the description of the format alone, and images that are placed by brute force.

use std::collections::{BTreeMap, BTreeSet};

use pollux_mempool::region::PageSize;
use pollux_mempool::time::Ns;
use pollux_pipelines::Moment;
use pollux_pmd::event::RegionOptions;
use pollux_pmd::stream::StreamId;

use super::super::*;
use crate::formats::{EigerBits, EigerLink, Layout};

/// How long an image waits for its packets.
pub(super) const TIMEOUT: u64 = 1000;

/// Numbers of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) frame: u64,
    pub(super) module: usize,
    pub(super) interface: usize,
    pub(super) packet: usize,
}

/// Layouts of small images, with numbers and sizes as in the description of the format.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    pub(super) layout: Layout,
    pub(super) kind: u8,
    pub(super) modules: usize,
    pub(super) interfaces: usize,
    pub(super) packets: usize,
    pub(super) bytes: usize,
}

pub(super) fn geometries() -> [Geometry; 4] {
    let geometry = |layout, kind, modules, interfaces, packets, bytes| Geometry {
        layout,
        kind,
        modules,
        interfaces,
        packets,
        bytes,
    };
    let ten = |bits| Layout::eiger(2, bits, EigerLink::TenGigabit).unwrap();
    [
        geometry(Layout::jungfrau(1, 2).unwrap(), 3, 1, 2, 64, 8192),
        geometry(Layout::jungfrau(2, 1).unwrap(), 3, 2, 1, 128, 8192),
        geometry(Layout::moench(2, 2).unwrap(), 5, 2, 2, 25, 6400),
        geometry(ten(EigerBits::Sixteen), 1, 2, 1, 64, 4096),
    ]
}

impl Geometry {
    pub(super) fn config(&self, policy: DiscardPolicy) -> ReceiveConfig {
        let streams = 0..(self.modules * self.interfaces) as u16;
        ReceiveConfig {
            policy,
            buffers: 32,
            timeout: Ns(TIMEOUT),
            jump: 40,
            horizon: 50,
            memory: RegionOptions {
                pages: PageSize::Kib4,
                ..RegionOptions::default()
            },
            ..ReceiveConfig::new(self.layout, Route::Streams(streams.map(StreamId).collect()))
        }
    }

    pub(super) fn stream(&self, key: Key) -> StreamId {
        StreamId((key.module * self.interfaces + key.interface) as u16)
    }

    /// All packets of a frame.
    pub(super) fn keys(&self, frame: u64) -> Vec<Key> {
        let mut keys = Vec::new();
        for module in 0..self.modules {
            for interface in 0..self.interfaces {
                keys.extend((0..self.packets).map(|packet| Key {
                    frame,
                    module,
                    interface,
                    packet,
                }));
            }
        }
        keys
    }

    /// The bytes of a packet's pixels, which differ from those of other packets.
    pub(super) fn pixels(&self, key: Key) -> Vec<u8> {
        let place = (key.module * 2 + key.interface) * 131 + key.packet;
        let seed = key.frame as usize * 7919 + place * 31;
        (0..self.bytes)
            .map(|n| (seed + n * 17 + (n >> 8)) as u8)
            .collect()
    }

    pub(super) fn payload(&self, key: Key) -> Vec<u8> {
        self.encode(key, 100 + key.module as u16)
    }

    /// A packet of a module with this identifier.
    pub(super) fn encode(&self, key: Key, id: u16) -> Vec<u8> {
        let row = (key.module * self.interfaces + key.interface) as u16;
        let mut bytes = Vec::new();
        bytes.extend(key.frame.to_le_bytes());
        bytes.extend(777_u32.to_le_bytes()); // exposure
        bytes.extend((key.packet as u32).to_le_bytes());
        bytes.extend((key.frame + 5000).to_le_bytes()); // bunch
        bytes.extend((key.frame * 10).to_le_bytes()); // timestamp
        for half in [id, row, 0, 0] {
            bytes.extend(half.to_le_bytes());
        }
        bytes.extend([0; 6]);
        bytes.extend([self.kind, 2]);
        bytes.extend(self.pixels(key));
        bytes
    }

    /// An image with these packets, by brute force.
    pub(super) fn image(&self, packets: &[Key]) -> Vec<u8> {
        let module = self.interfaces * self.packets * self.bytes;
        let mut image = vec![0xFF; self.modules * module];
        for &key in packets {
            let number = key.interface * self.packets + key.packet;
            let at = key.module * module + number * self.bytes;
            image[at..at + self.bytes].copy_from_slice(&self.pixels(key));
        }
        image
    }

    /// Rows with a missing packet, by brute force.
    pub(super) fn lost_rows(&self, packets: &[Key]) -> Vec<(usize, usize)> {
        let (rows, row_bytes) = (self.layout.module().rows, self.layout.module().columns * 2);
        let number = |key: &Key| (key.module, key.interface * self.packets + key.packet);
        let there: BTreeSet<_> = packets.iter().map(number).collect();
        let mut lost = Vec::new();
        for module in 0..self.modules {
            for row in 0..rows {
                let bytes = row * row_bytes..(row + 1) * row_bytes;
                let mut numbers = bytes.map(|byte| byte / self.bytes).collect::<Vec<_>>();
                numbers.dedup();
                if numbers
                    .iter()
                    .any(|&number| !there.contains(&(module, number)))
                {
                    lost.push((module, row));
                }
            }
        }
        lost
    }
}

/// All images that are due.
pub(super) fn poll<P: Stored>(reader: &mut ImageReader<P>, now: u64) -> Vec<Image<P>> {
    std::iter::from_fn(|| reader.poll(Moment(now))).collect()
}

/// Compares an image with the packets that it has to have.
pub(super) fn check(geometry: &Geometry, image: &Image<u16>, packets: &[Key]) {
    let pixels: Vec<u8> = image
        .pixels()
        .iter()
        .flat_map(|n| n.to_le_bytes())
        .collect();
    assert!(
        pixels == geometry.image(packets),
        "{image:?} has other pixels"
    );
    let all = geometry.modules * geometry.interfaces * geometry.packets;
    assert_eq!(image.is_complete(), packets.len() == all);
    assert_eq!(image.is_empty(), packets.is_empty());
    assert_eq!(image.missing_packets(), all - packets.len());
    let lost = image.losses().flat_map(|loss| {
        let module = loss.module;
        loss.rows.map(move |row| (module, row))
    });
    assert!(lost.eq(geometry.lost_rows(packets)), "{image:?}");
    for module in 0..geometry.modules {
        let mask = image.mask(module);
        let of_module = packets.iter().filter(|key| key.module == module);
        let mut bits = [0_u8; 64];
        for key in of_module.clone() {
            let bit = key.interface * geometry.packets + key.packet;
            bits[bit / 8] |= 1 << (bit % 8);
        }
        assert_eq!(mask.as_bytes(), &bits);
        assert_eq!(mask.count(), of_module.clone().count());
        let id = of_module.clone().next().map(|_| 100 + module as u16);
        assert_eq!(image.module_id(module), id);
        let len = image.pixels().len() / geometry.modules;
        let own = &image.pixels()[module * len..(module + 1) * len];
        assert!(image.module_pixels(module) == own);
    }
    assert_eq!(image.module_id(geometry.modules), None);
    assert!(image.module_pixels(geometry.modules).is_empty());
    let number = image.number();
    let expected = (!packets.is_empty()).then_some((number * 10, 777, number + 5000));
    let times = (image.timestamp(), image.exposure(), image.bunch_id());
    assert_eq!(
        times,
        match expected {
            Some((time, exposure, bunch)) => (Some(time), Some(exposure), Some(bunch)),
            None => (None, None, None),
        }
    );
}

/// Packets by frame.
pub(super) type Frames = BTreeMap<u64, Vec<Key>>;
