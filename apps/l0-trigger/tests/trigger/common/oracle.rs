//! What a capture of the boards holds, read without the code under test: what the trigger has to
//! report about it.

use std::collections::{BTreeMap, BTreeSet};

use pollux_emulator::config::EmulatorConfig;
use pollux_emulator::link::CAPTURE_EPOCH;

use super::capture::Packet;
use super::frames::checksum_holds;

/// Ethernet, IPv4 and UDP headers of the boards' frames.
const HEADERS: usize = 42;

/// A frame that arrived intact.
struct Arrival {
    board: u8,
    sequence: u32,
    events: std::ops::Range<u64>,
    /// Behind its time, in nanoseconds.
    delay: u64,
}

/// What a walk through the intact frames of one board shows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sequence {
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
    pub(crate) gaps: u64,
    pub(crate) missing: u64,
    pub(crate) duplicates: u64,
    pub(crate) reordered: u64,
    /// Frames before the first and after the last that came: a receiver cannot know of them.
    pub(crate) unseen: u64,
}

/// What a capture holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) boards: Vec<Sequence>,
    pub(crate) corrupted: u64,
    /// Frames that came behind the deadline of their events.
    pub(crate) late: u64,
    /// Events of which at least one board's frame came in time.
    pub(crate) built: u64,
    /// Events of which all boards' frames came in time.
    pub(crate) complete: u64,
}

impl Facts {
    pub(crate) fn sum(&self, of: impl Fn(&Sequence) -> u64) -> u64 {
        self.boards.iter().map(of).sum()
    }
}

fn le<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().unwrap()
}

/// Reads a capture of the boards that nothing was added to. `patience` is how long an event
/// waits, in nanoseconds; every event must have one board at least whose frame came in time.
pub(crate) fn facts(packets: &[Packet], config: &EmulatorConfig, patience: u64) -> Facts {
    let mut facts = Facts::default();
    facts
        .boards
        .resize_with(config.boards.into(), Sequence::default);
    let mut came = vec![BTreeSet::new(); config.boards.into()];
    let mut in_time: BTreeMap<u64, BTreeSet<u8>> = BTreeMap::new();
    for packet in packets {
        let Some(arrival) = arrival(packet, config) else {
            facts.corrupted += 1;
            continue;
        };
        let Arrival {
            board,
            sequence,
            events,
            delay,
        } = arrival;
        let port = config.addresses.trigger_port + u16::from(board);
        assert_eq!(packet.bytes[36..38], port.to_be_bytes());
        let came = &mut came[usize::from(board)];
        let board_facts = &mut facts.boards[usize::from(board)];
        board_facts.frames += 1;
        board_facts.bytes += (packet.bytes.len() - HEADERS) as u64;
        let newest = came.last().copied();
        if !came.insert(sequence) {
            board_facts.duplicates += 1;
            continue;
        }
        match newest {
            Some(newest) if sequence < newest => board_facts.reordered += 1,
            Some(newest) if sequence > newest + 1 => board_facts.gaps += 1,
            _ => {}
        }
        if delay < patience {
            events.for_each(|n| _ = in_time.entry(n).or_default().insert(board));
        } else {
            facts.late += 1;
        }
    }
    for (board, came) in facts.boards.iter_mut().zip(&came) {
        let (first, last) = (*came.first().unwrap(), *came.last().unwrap());
        board.missing = u64::from(last - first) + 1 - came.len() as u64;
        // Every frame has as many events as it may have: they fit.
        let made = config.events.div_ceil(config.events_per_frame.into());
        board.unseen = made - (u64::from(last - first) + 1);
    }
    facts.built = in_time.len() as u64;
    let all = usize::from(config.boards);
    facts.complete = in_time
        .values()
        .filter(|boards| boards.len() == all)
        .count() as u64;
    facts
}

fn arrival(packet: &Packet, config: &EmulatorConfig) -> Option<Arrival> {
    if !checksum_holds(&packet.bytes) {
        return None;
    }
    let payload = &packet.bytes[HEADERS..];
    let count = u64::from(u16::from_le_bytes(le(payload, 12)));
    let first = u64::from_le_bytes(le(payload, 16)) - config.first_timestamp;
    assert_eq!(first % config.spacing(), 0);
    let first = first / config.spacing();
    let due = CAPTURE_EPOCH.0 + (first + count - 1) * config.spacing() * 25;
    Some(Arrival {
        board: payload[6],
        sequence: u32::from_le_bytes(le(payload, 8)),
        events: first..first + count,
        delay: packet.time - due,
    })
}
