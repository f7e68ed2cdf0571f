//! The hot loops of pipelines' core, on fixed data.

use std::hint::black_box;

use anyhow::Result;
use pollux_pipelines::Moment;
use pollux_pipelines::assemble::{AssembleConfig, Part, assembler};

use crate::loops::{Loop, Round};

/// Packets of a frame.
const PACKETS: usize = 32;

pub(crate) fn all() -> Vec<Loop> {
    vec![Loop {
        name: "assemble",
        element: "packet of 256 B placed in its frame",
        elements: PACKETS as u64,
        rounds: 4096,
        make: assemble,
    }]
}

fn assemble() -> Result<Round> {
    let (mut placer, mut reader) = assembler(AssembleConfig {
        packets: PACKETS,
        packet_bytes: 256,
        header_bytes: 48,
        ..AssembleConfig::default()
    })?;
    let bytes = [7; 48 + 256];
    let mut key = 0;
    Ok(Box::new(move || {
        let (header, data) = bytes.split_at(48);
        let at = Moment(key);
        let place = |packet| Part {
            key,
            sender: 0,
            packet,
            at,
            header,
            data,
        };
        let placed = (0..PACKETS).all(|packet| placer.place(black_box(&place(packet))).is_ok());
        key += 1;
        let frame = reader.poll(at);
        placed && frame.is_some_and(|frame| black_box(frame).is_complete())
    }))
}
