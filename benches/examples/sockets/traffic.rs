//! What boards send: frames that are made before, of which only numbers and times change.

use std::net::SocketAddrV4;

use pollux_benches::events;
use pollux_na62::formats::hits::{HitsWriter, MAX_FRAME};
use pollux_na62::formats::mtp::SOURCE_RICH;
use pollux_na62::physics::model::Rings;
use pollux_pmd::net::{MacAddr, UDP_HEADERS, UdpChecksum, UdpEndpoint, UdpTemplate};
use pollux_pmd_testkit::netns::{IP_A, IP_B, MAC_A, MAC_B};

use super::failure::Failure;

/// Frames that are sent or received at a time, on every side.
pub(super) const BURST: usize = 64;
/// Boards that send, each to a UDP port of its own.
pub(super) const BOARDS: u8 = 4;
/// The first of these ports.
pub(super) const PORT: u16 = 58_900;
/// Containers of each board that differ.
const VARIETY: usize = 64;
/// Slots from one event to the next.
const STEP: u64 = 40;

/// Datagrams without end: of each board in turn, those of one board in order.
pub(super) struct Traffic {
    /// Whole frames, those of one board together.
    frames: Vec<Vec<u8>>,
    /// Fragments of a datagram.
    fragments: u64,
    board: usize,
    /// Datagrams that each board has sent.
    sent: [u64; BOARDS as usize],
}

impl Traffic {
    pub(super) fn new(fragments: u64) -> Result<Self, Failure> {
        let physics = events(Rings::Poisson(1.5), fragments * VARIETY as u64);
        let physics = physics.map_err(|why| why.to_string())?;
        let mut frames = Vec::new();
        for board in 0..BOARDS {
            let end = |mac, ip: [u8; 4], port| UdpEndpoint {
                mac: MacAddr(mac),
                socket: SocketAddrV4::new(ip.into(), port),
            };
            let to = end(MAC_B, IP_B, PORT + u16::from(board));
            // No checksum, so that no side verifies one in software: a NIC would.
            let headers =
                UdpTemplate::new(end(MAC_A, IP_A, 4000), to).with_checksum(UdpChecksum::Absent);
            for events in physics.chunks(fragments as usize) {
                let mut frame = vec![0; UDP_HEADERS + MAX_FRAME];
                let payload = &mut frame[UDP_HEADERS..];
                let mut writer = HitsWriter::new(payload, SOURCE_RICH, board, 0)?;
                for (n, event) in (0..).zip(events) {
                    writer.push(n * STEP, event.board_hits(board, BOARDS))?;
                }
                let (_, len) = writer.finish();
                let len = headers.write(&mut frame, len).ok_or("too long a frame")?;
                frame.truncate(len);
                frames.push(frame);
            }
        }
        Ok(Self {
            frames,
            fragments,
            board: 0,
            sent: [0; BOARDS as usize],
        })
    }

    /// Fragments of a datagram.
    pub(super) fn fragments(&self) -> usize {
        self.fragments as usize
    }

    /// The next frame, of the next board.
    pub(super) fn next_frame(&mut self) -> &[u8] {
        let board = self.board;
        self.board = (board + 1) % usize::from(BOARDS);
        self.next_of(board)
    }

    /// The next frame of a board.
    pub(super) fn next_of(&mut self, board: usize) -> &[u8] {
        let n = self.sent[board];
        self.sent[board] += 1;
        let frame = &mut self.frames[board * VARIETY + n as usize % VARIETY];
        // As in docs/formats/rich-hits.md.
        let payload = &mut frame[UDP_HEADERS..];
        payload[8..12].copy_from_slice(&(n as u32).to_le_bytes());
        payload[16..24].copy_from_slice(&(n * self.fragments * STEP).to_le_bytes());
        frame
    }
}
