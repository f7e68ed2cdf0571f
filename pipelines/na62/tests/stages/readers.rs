//! Readers of what NA62's boards send: MEP with TEL62 data, and MTP primitives.

mod chains;
mod mtp;
mod tel62;

use crate::common::{Part, env, hit, pool};
use pollux_mempool::PoolCache;
use pollux_mempool::time::Tsc;
use pollux_na62::formats::mep::MepWriter;
use pollux_na62::formats::mtp::{MtpWriter, Primitive, SOURCE_RICH};
use pollux_na62::formats::tel62::{Edge, write_tel62};
use pollux_na62::l0::{Fragments, Frame};
use pollux_na62::rich::Hit;
use pollux_na62::stage_registry;
use pollux_pipelines::{Batch, Moment, Pipeline, StageEnv};
use pollux_pmd::Cause;
use pollux_pmd::stream::StreamId;

/// Photomultipliers of each of four boards.
const PMS_OF_BOARD: u16 = 488;

fn tables(stages: &str) -> Vec<toml::Table> {
    let config: toml::Table = format!("stage = [{stages}]").parse().unwrap();
    config["stage"].clone().try_into().unwrap()
}

/// Stages from frames on, and what they are given.
struct Rig<Out> {
    env: StageEnv,
    pipeline: Pipeline<Frame, Out>,
    cache: PoolCache,
    frames: u64,
}

impl<Out: 'static> Rig<Out> {
    fn new(stages: &str) -> Self {
        let mut env = env(4);
        let pipeline = stage_registry().pipeline(&tables(stages), &mut env);
        Self {
            env,
            pipeline: pipeline.unwrap(),
            cache: pool(64, 2048).cache(16).unwrap(),
            frames: 0,
        }
    }

    fn put(&mut self, stream: u16, payload: &[u8], out: &mut Vec<Out>) {
        self.frames += 1;
        let bytes = [&[0xee; 42], payload].concat();
        let mut mbuf = self.cache.alloc_from(&bytes).unwrap();
        mbuf.set_arrival(Tsc(self.frames));
        let mut batch = Batch::with_capacity(1);
        batch
            .push(Frame {
                mbuf,
                stream: StreamId(stream),
                offset: 42,
                len: payload.len() as u16,
                at: Moment(1000 * self.frames),
            })
            .unwrap();
        self.pipeline.process(&mut batch, out);
    }

    fn dropped(&self, cause: Cause) -> u64 {
        self.env.ledger.balance().dropped_for(cause)
    }
}

impl Rig<Fragments> {
    /// The fragments of one packet.
    fn parts(&mut self, stream: u16, payload: &[u8]) -> Vec<Part> {
        let mut out = Vec::new();
        self.put(stream, payload, &mut out);
        let fragments = out.iter().flat_map(Fragments::iter);
        fragments.map(Part::from).collect()
    }
}

/// The leading edge of a hit, `slots` behind its event at `timestamp`.
fn edge(board: u8, timestamp: u32, hit: Hit, slots: i64) -> Edge {
    let channel = hit.pm - u16::from(board) * PMS_OF_BOARD;
    let slot = i64::from(timestamp) + slots;
    Edge {
        fpga: (channel >> 7) as u8,
        tdc: (channel >> 5) as u8 & 3,
        channel: channel as u8 & 31,
        leading: true,
        time: (slot as u64) << 8 | u64::from(hit.fine),
    }
}

/// A packet of a board with events of these edges, numbered from `first` on.
fn mep(board: u8, first: u32, events: &[(u32, Vec<Edge>)]) -> Vec<u8> {
    let mut writer = MepWriter::new(vec![0; 60_000], SOURCE_RICH, board, first).unwrap();
    let mut data = vec![0; 20_000];
    for (timestamp, edges) in events {
        let mut edges = edges.clone();
        edges.sort_by_key(|edge| (edge.fpga, edge.time));
        let len = write_tel62(&mut data, board, 1, *timestamp, &edges).unwrap();
        writer.push(*timestamp, false, &data[..len]).unwrap();
    }
    let (mut bytes, len) = writer.finish();
    bytes.truncate(len);
    bytes
}

/// Packets of three events each, number `n` of a board.
fn packet(board: u8, n: u32) -> Vec<u8> {
    let events = (3 * n..3 * n + 3).map(|event| {
        let timestamp = 1000 + 40 * event;
        let pm = u16::from(board) * PMS_OF_BOARD + (event % 488) as u16;
        (timestamp, vec![edge(board, timestamp, hit(pm), 0)])
    });
    mep(board, 3 * n, &events.collect::<Vec<_>>())
}

const TEL62: &str = "{ name = 'read-mep' }, { name = 'read-tel62' }";

/// A packet of primitives: each its identifier and slot.
fn mtp(detector: u8, board: u8, primitives: &[(u16, u32)]) -> Vec<u8> {
    let mut writer = MtpWriter::new(vec![0; 1472], detector, board).unwrap();
    for &(id, timestamp) in primitives {
        let primitive = Primitive {
            id,
            timestamp,
            fine: 77,
        };
        writer.push(primitive).unwrap();
    }
    let (mut bytes, len) = writer.finish();
    bytes.truncate(len);
    bytes
}

#[test]
fn options_that_are_wrong_are_named() {
    let refusal = |stages: &str| {
        let made = stage_registry().pipeline::<Frame, Fragments>(&tables(stages), &mut env(4));
        made.err().unwrap().to_string()
    };
    for (stages, message) in [
        (
            "{ name = 'read-mep', boards = [1] }, { name = 'read-tel62' }",
            "stage `read-mep`: 1 boards for 4 sources: one each",
        ),
        (
            "{ name = 'read-mep' }, { name = 'read-tel62', first_pm = [1] }",
            "stage `read-tel62`: first_pm: 1 numbers for 4 sources: one each",
        ),
        (
            "{ name = 'read-mep' }, { name = 'read-tel62', first_pm = [1, 2, 2, 3] }",
            "stage `read-tel62`: first_pm: 2: the numbers must differ, and be below 1952",
        ),
        (
            "{ name = 'read-mep' }, { name = 'read-tel62', first_pm = [1, 2, 3, 1952] }",
            "stage `read-tel62`: first_pm: 1952: the numbers must differ, and be below 1952",
        ),
        (
            "{ name = 'read-mep' }, { name = 'read-tel62', slots_around = 65 }",
            "stage `read-tel62`: slots_around = 65: it must be 0 to 64",
        ),
        (
            "{ name = 'read-tel62' }",
            "stage `read-tel62` takes multi-event packets, but the pipeline is given frames",
        ),
        (
            "{ name = 'read-mtp', boards = [0, 1, 2, 3], detectors = [1, 2, 3, 4] }",
            "stage `read-mtp`: boards and detectors: one of them, not both",
        ),
        (
            "{ name = 'read-mtp', detectors = [1, 2, 3, 3] }",
            "stage `read-mtp`: detector 3 is listed twice",
        ),
        (
            "{ name = 'read-mtp', select = [{ source = 4, mask = 1, value = 1 }] }",
            "stage `read-mtp`: select: source = 4: there are 4 sources, from 0 on",
        ),
        (
            "{ name = 'read-mtp', select = [{ source = 0, mask = 1, value = 2 }] }",
            "stage `read-mtp`: select: value = 0x0002 has bits that mask = 0x0001 does not: no \
             primitive would be taken",
        ),
        (
            "{ name = 'read-mtp' }, { name = 'merge' }",
            "stage `merge`: primitives have no hits to merge: take `build`",
        ),
    ] {
        assert_eq!(refusal(stages), message);
    }
}
