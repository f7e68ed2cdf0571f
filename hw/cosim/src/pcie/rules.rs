//! The rules of the card, for any behaviour of the host (hw/docs/interfaces.md, "Host bus: hif").

use pollux_card_model::FUNCTIONS;

use super::header::{ADDRESS, FIRST_BE, FUNC, Header, LAST_BE, LENGTH, TAG};
use crate::pins::{Beat, CoreOut};

/// Maximum number of stored violations; further ones are similar.
const KEPT: usize = 20;

/// One stream of the card's: its offers are stable until accepted, and a TLP has no gaps.
#[derive(Default)]
struct Stream {
    offered: Option<Beat>,
    inside: bool,
    /// Outstanding DWs of the TLP.
    left: usize,
}

impl Stream {
    /// Checks a cycle; returns the violation.
    fn look(
        &mut self,
        beat: &Beat,
        ready: bool,
        dws: impl FnOnce(Header) -> usize,
    ) -> Option<&'static str> {
        let seen = (beat.valid != 0).then(|| {
            let mut seen = *beat;
            if seen.sop == 0 {
                seen.header = [0; 4];
            }
            seen
        });
        if self.offered.is_some() && self.offered != seen {
            self.offered = None;
            return Some("what was offered was changed or taken back");
        }
        let Some(beat) = seen else {
            return self.inside.then_some("a gap within a TLP");
        };
        self.offered = Some(beat);
        if !ready {
            return None;
        }
        self.offered = None;
        if (beat.sop != 0) == self.inside {
            self.inside = beat.eop == 0;
            return Some("a TLP begins within another, or not at all");
        }
        if beat.sop != 0 {
            self.left = dws(Header::from_words(beat.header));
        }
        let here = self.left.min(8);
        self.left -= here;
        self.inside = beat.eop == 0;
        if self.inside == (self.left == 0) {
            return Some("its beats are not those of its length");
        }
        let behind = beat.data.get(here..).unwrap_or_default();
        behind
            .iter()
            .any(|&word| word != 0)
            .then_some("something behind its last DW")
    }
}

#[derive(Default)]
pub(super) struct Rules {
    writes: Stream,
    reads: Stream,
    answers: Stream,
    /// Tags of reads without their last completion.
    open: Vec<u64>,
    broken: Vec<String>,
}

impl Rules {
    /// A violation of the card.
    pub(super) fn broken(&mut self, now: u64, what: &str) {
        if self.broken.len() < KEPT {
            self.broken.push(format!("at {now} ps: {what}"));
        }
    }

    /// All violations so far.
    pub(super) fn all(&self) -> &[String] {
        &self.broken
    }

    /// A cycle, before its edge.
    pub(super) fn look(&mut self, now: u64, seen: &CoreOut, ready: [bool; 3]) {
        let with_data = |header: Header| header.dws();
        let of_answer = |header: Header| header.get(LENGTH) as usize;
        for (name, wrong) in [
            ("write", self.writes.look(&seen.wr_req, ready[0], with_data)),
            ("read", self.reads.look(&seen.rd_req, ready[1], |_| 0)),
            (
                "answer",
                self.answers.look(&seen.tx_cpl, ready[2], of_answer),
            ),
        ] {
            if let Some(wrong) = wrong {
                self.broken(now, &format!("{name}: {wrong}"));
            }
        }
    }

    /// The header of a write.
    pub(super) fn write(&mut self, now: u64, header: Header, longest: usize) {
        let bytes = 4 * header.dws();
        let known = header.without(&[ADDRESS, LENGTH, FIRST_BE, LAST_BE, FUNC]);
        let enables = (header.get(FIRST_BE), header.get(LAST_BE));
        let all = if bytes == 4 { (15, 0) } else { (15, 15) };
        let wrong = if let Some(wrong) = wrong_request(header, longest) {
            wrong
        } else if enables != all {
            "not all bytes are enabled"
        } else if known != 0 {
            "fields that must be 0"
        } else {
            return;
        };
        self.broken(now, &format!("write of {bytes} B: {wrong}: {header:x?}"));
    }

    /// The header of a read.
    pub(super) fn read(&mut self, now: u64, header: Header, longest: usize) {
        let known = header.without(&[ADDRESS, LENGTH, FIRST_BE, LAST_BE, FUNC, TAG]);
        let tag = header.get(TAG);
        let wrong = if let Some(wrong) = wrong_request(header, longest) {
            wrong
        } else if header.enabled().is_none() {
            "the bytes that it enables are not in one piece"
        } else if known != 0 {
            "fields that must be 0"
        } else if self.open.contains(&tag) {
            "its tag is another's, which is not answered yet"
        } else {
            self.open.push(tag);
            return;
        };
        self.broken(
            now,
            &format!("read of {} B: {wrong}: {header:x?}", 4 * header.dws()),
        );
    }

    /// The card is reset: its open transfers end.
    pub(super) fn reset(&mut self) {
        *self = Self {
            broken: std::mem::take(&mut self.broken),
            ..Self::default()
        };
    }

    /// A read is complete, or never will be.
    pub(super) fn closed(&mut self, tag: u64) {
        self.open.retain(|&open| open != tag);
    }
}

/// Rules of both kinds of request to memory.
fn wrong_request(header: Header, longest: usize) -> Option<&'static str> {
    let (at, bytes) = (header.get(ADDRESS), 4 * header.dws());
    if at % 4 != 0 {
        Some("its address is not that of a DW")
    } else if at % 4096 + bytes as u64 > 4096 {
        Some("it crosses 4 KiB")
    } else if bytes > longest {
        Some("longer than the host allows")
    } else if header.get(FUNC) >= FUNCTIONS as u64 {
        Some("of a function that the card has not")
    } else {
        None
    }
}
