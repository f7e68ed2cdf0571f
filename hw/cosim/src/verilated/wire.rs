//! The wires of a port: frames to XGMII words, and back (IEEE 802.3, clause 46).

use std::collections::VecDeque;

use pollux_card_model::{FrameEnd, LinkSignal, WireFrame};

/// Control characters, table 46-3.
const IDLE: u8 = 0x07;
const START: u8 = 0xfb;
const TERMINATE: u8 = 0xfd;
const ERROR: u8 = 0xfe;
const SEQUENCE: u8 = 0x9c;
/// After the start: preamble, and start of frame delimiter (3.2.1, 3.2.2).
const PREAMBLE: [u8; 7] = [0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5];
/// Bytes between frames, the terminate character among them (4.4.2).
const GAP: u32 = 12;
/// Deficit of a gap, so that the mean is right (46.3.1.4).
const DEFICIT: u32 = 3;

/// One cycle: 8 lanes, and a bit for each control character.
pub(super) type Word = (u64, u8);

/// CRC-32 of IEEE 802.3 (3.2.9), as it follows the bytes.
fn fcs(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ ((crc & 1) * 0xedb8_8320)
        })
    })
}

/// Frames to a port.
pub(super) struct Sender {
    queue: VecDeque<WireFrame>,
    signal: LinkSignal,
    /// Remaining lanes of a frame, from its start to its end.
    lanes: VecDeque<(u8, bool)>,
    /// Characters since the last frame, and the deficit of earlier gaps.
    gap: u32,
    deficit: u32,
    /// When the last frame began: the word with its start character.
    pub(super) began: u64,
}

impl Default for Sender {
    fn default() -> Self {
        let (queue, lanes) = (VecDeque::new(), VecDeque::new());
        Self {
            queue,
            signal: LinkSignal::Idle,
            lanes,
            gap: GAP,
            deficit: 0,
            began: 0,
        }
    }
}

impl Sender {
    pub(super) fn put(&mut self, frame: WireFrame) {
        self.queue.push_back(frame);
    }

    /// Frames that have not been sent completely.
    pub(super) fn left(&self) -> usize {
        self.queue.len() + usize::from(!self.lanes.is_empty())
    }

    pub(super) fn set_signal(&mut self, signal: LinkSignal) {
        self.signal = signal;
    }

    /// The word of the cycle that begins now.
    pub(super) fn word(&mut self, now: u64) -> Word {
        let fault = match self.signal {
            LinkSignal::Idle => None,
            LinkSignal::LocalFault => Some(1),
            LinkSignal::RemoteFault => Some(2),
        };
        if let Some(code) = fault.filter(|_| self.lanes.is_empty()) {
            self.gap = GAP;
            return (
                u64::from_le_bytes([SEQUENCE, 0, 0, code, SEQUENCE, 0, 0, code]),
                0x11,
            );
        }
        let (mut data, mut control) = (0, 0);
        for lane in 0..8 {
            if lane % 4 == 0 && self.lanes.is_empty() {
                self.begin(now);
            }
            let (character, is_control) = self.lanes.pop_front().unwrap_or((IDLE, true));
            if character == TERMINATE && is_control {
                self.gap = 0;
            }
            self.gap = self.gap.saturating_add(1);
            data |= u64::from(character) << (8 * lane);
            control |= u8::from(is_control) << lane;
        }
        (data, control)
    }

    /// Begins the next frame, if the gap before it is long enough.
    fn begin(&mut self, now: u64) {
        let short = GAP.saturating_sub(self.gap);
        if self.deficit + short > DEFICIT {
            return;
        }
        let Some(frame) = self.queue.pop_front() else {
            return;
        };
        // Longer gaps pay for shorter ones.
        self.deficit = (self.deficit + short).saturating_sub(self.gap.saturating_sub(GAP));
        self.began = now;
        let sum = fcs(&frame.bytes) ^ u32::from(frame.end == FrameEnd::BadFcs);
        let bytes = PREAMBLE
            .iter()
            .chain(&frame.bytes)
            .copied()
            .chain(sum.to_le_bytes());
        self.lanes.push_back((START, true));
        self.lanes.extend(bytes.map(|byte| (byte, false)));
        if let Some(last) = self
            .lanes
            .back_mut()
            .filter(|_| frame.end == FrameEnd::Error)
        {
            *last = (ERROR, true);
        }
        self.lanes.push_back((TERMINATE, true));
    }
}

/// Frames that a port has sent.
#[derive(Default)]
pub(super) struct Receiver {
    /// Of the current frame: characters after its start, and whether all are data.
    inside: Option<(Vec<u8>, bool)>,
    frames: VecDeque<WireFrame>,
    /// Misplaced characters.
    pub(super) wrong: u64,
    /// When the last frame began.
    pub(super) began: u64,
}

impl Receiver {
    pub(super) fn take(&mut self) -> Option<WireFrame> {
        self.frames.pop_front()
    }

    pub(super) fn word(&mut self, now: u64, (data, control): Word) {
        if self.inside.is_none() && control == 0xff && data == u64::from_le_bytes([IDLE; 8]) {
            return;
        }
        for lane in 0..8 {
            let (character, is_control) = ((data >> (8 * lane)) as u8, control >> lane & 1 != 0);
            self.character(now, lane, character, is_control);
        }
    }

    fn character(&mut self, now: u64, lane: u32, character: u8, is_control: bool) {
        match (&mut self.inside, character, is_control) {
            (None, START, true) if lane.is_multiple_of(4) => {
                self.inside = Some((Vec::new(), true));
                self.began = now;
            }
            // An ordered set is its character, and three bytes of data (46.3.4).
            (None, IDLE | SEQUENCE, true) | (None, _, false) => {}
            (Some((bytes, _)), _, false) => bytes.push(character),
            (Some(_), TERMINATE, true) => self.end(),
            (Some((bytes, good)), ERROR, true) => {
                bytes.push(character);
                *good = false;
            }
            _ => self.wrong += 1,
        }
    }

    fn end(&mut self) {
        let Some((characters, good)) = self.inside.take() else {
            return;
        };
        let body = characters.strip_prefix(&PREAMBLE);
        self.wrong += u64::from(body.is_none());
        let Some((bytes, sum)) = body.and_then(|body| body.split_last_chunk::<4>()) else {
            self.wrong += 1;
            return;
        };
        let end = match good {
            false => FrameEnd::Error,
            true if u32::from_le_bytes(*sum) == fcs(bytes) => FrameEnd::Good,
            true => FrameEnd::BadFcs,
        };
        self.frames.push_back(WireFrame {
            bytes: bytes.to_vec(),
            end,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(len: usize) -> WireFrame {
        WireFrame::good((0..len).map(|i| i as u8).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_sent_is_received() {
        assert_eq!(fcs(b"123456789"), 0xcbf4_3926);
        let (mut sender, mut receiver) = (Sender::default(), Receiver::default());
        let ends = [FrameEnd::Good, FrameEnd::BadFcs, FrameEnd::Error];
        let sent: Vec<_> = (60..90)
            .zip(ends.iter().cycle())
            .map(|(len, &end)| WireFrame { end, ..frame(len) })
            .collect();
        for frame in &sent {
            sender.put(frame.clone());
        }
        let mut now = 0;
        while sender.left() > 0 {
            receiver.word(now, sender.word(now));
            now += 6400;
        }
        assert_eq!(receiver.wrong, 0);
        for sent in sent {
            let received = receiver.take().expect("a frame");
            assert_eq!(received.end, sent.end);
            assert!(sent.end == FrameEnd::Error || received.bytes == sent.bytes);
        }
    }

    #[test]
    fn minimum_frames_take_84_bytes_each() {
        let mut sender = Sender::default();
        (0..100).for_each(|_| sender.put(frame(60)));
        let words = std::iter::from_fn(|| (sender.left() > 0).then(|| sender.word(0))).count();
        assert!((1048..=1050).contains(&words), "{words} words");
    }

    #[test]
    fn gaps_are_twelve_bytes_on_average() {
        let mut sender = Sender::default();
        (0..400).for_each(|i| sender.put(frame(60 + i % 4)));
        let bytes: usize = (0..400).map(|i| 8 + 64 + i % 4 + 12).sum();
        let words = std::iter::from_fn(|| (sender.left() > 0).then(|| sender.word(0))).count();
        assert!(
            words.abs_diff(bytes / 8) <= 3,
            "{words} words for {bytes} bytes"
        );
    }
}
