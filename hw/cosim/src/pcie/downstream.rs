//! From the host to the card: completions of its reads, and accesses of its registers.

use std::collections::{BTreeMap, VecDeque};

use pollux_card_model::ReadError;

use super::Draw;
use super::header::{
    ABORTED, ADDRESS, BYTE_COUNT, FUNC, Header, LENGTH, LOWER_ADDRESS, POISONED, STATUS,
    SUCCESSFUL, TAG, UNSUPPORTED,
};
use super::link::{LINK_BYTES_PER_US, Link, Tlp};
use super::upstream::Done;
use crate::pins::Beat;

/// Completions are split only at multiples of this (read completion boundary, PCIe 4.0, 2.3.1.1).
const BOUNDARY: u64 = 64;

/// What is at the card by then.
struct Coming {
    arrives: u64,
    tlp: Tlp,
}

/// A stream into the card: an offer is stable until accepted, and a TLP has no gaps.
#[derive(Default)]
struct Offer {
    beats: VecDeque<Beat>,
}

impl Offer {
    fn pins(&self) -> Beat {
        self.beats.front().copied().unwrap_or_default()
    }
}

#[derive(Default)]
pub(super) struct Downstream {
    link: Link,
    requests: VecDeque<Coming>,
    request: Offer,
    /// Completions of each tag, in their order.
    completions: BTreeMap<u64, VecDeque<Coming>>,
    completion: Offer,
    /// The tag of the completion that is offered.
    tag: u64,
}

impl Downstream {
    /// A register access is in flight.
    pub(super) fn request(&mut self, now: u64, tlp: Tlp, draw: &mut Draw<'_>) {
        let last = self.requests.back().map_or(0, |last| last.arrives);
        let arrives =
            (self.link.send(now, tlp.data.len(), LINK_BYTES_PER_US) + draw.register()).max(last);
        self.requests.push_back(Coming { arrives, tlp });
    }

    /// Register accesses that the card has not accepted yet.
    pub(super) fn requests(&self) -> usize {
        self.requests.len() + usize::from(!self.request.beats.is_empty())
    }

    /// Whether nothing is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.requests() == 0 && self.completions.is_empty() && self.completion.beats.is_empty()
    }

    /// Memory has answered a read: splits the data into completions. False if there are none.
    pub(super) fn complete(&mut self, now: u64, done: &Done, draw: &mut Draw<'_>) -> bool {
        if done.result == Err(ReadError::Unanswered) {
            return false;
        }
        let (begin, len) = done.header.enabled().unwrap_or((0, done.bytes.len()));
        let (mut at, mut left) = (done.header.get(ADDRESS) + begin as u64, len as u64);
        let tag = done.header.get(TAG);
        let mut pieces = Vec::new();
        while left > 0 {
            let len = draw.piece(at, left, BOUNDARY);
            pieces.push((at, left, len));
            (at, left) = (at + len, left - len);
        }
        // One segment fails, and ends the read; those before it are correct.
        let failing = draw.failing(pieces.len());
        for (index, (at, left, len)) in pieces.into_iter().enumerate() {
            let from = done.bytes.len() - left as usize;
            let bytes = &done.bytes[from..from + len as usize];
            let error = done.result.err().filter(|_| index == failing);
            let tlp = completion(&done.header, at, left, bytes, error);
            let arrives = self.link.send(now, tlp.data.len(), LINK_BYTES_PER_US);
            self.completions
                .entry(tag)
                .or_default()
                .push_back(Coming { arrives, tlp });
            if error.is_some_and(|error| error != ReadError::Poisoned) {
                break;
            }
        }
        true
    }

    /// An edge: the card's acceptance of the offers. Returns the tag whose last completion it accepted.
    pub(super) fn edge(&mut self, request: bool, completion: bool) -> Option<u64> {
        if request {
            self.request.beats.pop_front();
        }
        let taken = self.completion.beats.pop_front_if(|_| completion)?;
        let over = taken.eop != 0 && !self.completions.contains_key(&self.tag);
        over.then_some(self.tag)
    }

    /// The card's next inputs: a request, and a completion.
    pub(super) fn offer(&mut self, now: u64, draw: &mut Draw<'_>) -> (Beat, Beat) {
        if self.request.beats.is_empty() && draw.takes() {
            let next = self.requests.pop_front_if(|next| next.arrives <= now);
            self.request.beats = next.map_or_else(VecDeque::new, |next| next.tlp.beats(draw.rng));
        }
        if self.completion.beats.is_empty() && draw.takes() {
            let ripe = |(&tag, coming): (&u64, &VecDeque<Coming>)| {
                let arrives = coming.front()?.arrives;
                (arrives <= now).then_some((arrives, tag))
            };
            let ripe: Vec<_> = self.completions.iter().filter_map(ripe).collect();
            if let Some(tag) = draw.whose(&ripe) {
                self.next_completion(tag, draw);
            }
        }
        (self.request.pins(), self.completion.pins())
    }

    fn next_completion(&mut self, tag: u64, draw: &mut Draw<'_>) {
        let Some(coming) = self.completions.get_mut(&tag) else {
            return;
        };
        if let Some(next) = coming.pop_front() {
            self.tag = tag;
            self.completion.beats = next.tlp.beats(draw.rng);
        }
        if coming.is_empty() {
            self.completions.remove(&tag);
        }
    }

    /// A completion of no read of the card.
    pub(super) fn stray(&mut self, now: u64, tag: u64) {
        let asked = Header::default().with(TAG, tag);
        let tlp = completion(&asked, 0, 64, &[0x5a; 64], None);
        let arrives = self.link.send(now, tlp.data.len(), LINK_BYTES_PER_US);
        let coming = Coming { arrives, tlp };
        self.completions.entry(tag).or_default().push_back(coming);
    }
}

/// A completion with some bytes from `at` on, of `left` outstanding bytes, or the reason of an
/// empty one (PCIe 4.0, 2.2.9).
fn completion(asked: &Header, at: u64, left: u64, bytes: &[u8], error: Option<ReadError>) -> Tlp {
    let into = at as usize % 4;
    let mut data = vec![0; into];
    data.extend_from_slice(bytes);
    data.resize(data.len().next_multiple_of(4), 0);
    let status = match error {
        None | Some(ReadError::Poisoned) => SUCCESSFUL,
        Some(ReadError::Abort) => ABORTED,
        Some(ReadError::Unsupported | ReadError::Unanswered) => UNSUPPORTED,
    };
    if status != SUCCESSFUL {
        data.clear();
    }
    let header = Header::default()
        .with(LOWER_ADDRESS, at)
        .with(BYTE_COUNT, left)
        .with(LENGTH, data.len() as u64 / 4)
        .with(STATUS, status)
        .with(POISONED, (error == Some(ReadError::Poisoned)).into())
        .with(TAG, asked.get(TAG))
        .with(FUNC, asked.get(FUNC));
    Tlp { header, data }
}
