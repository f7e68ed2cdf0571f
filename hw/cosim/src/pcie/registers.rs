//! Register accesses of the host, and their completions.

use super::header::{
    BAR, BYTE_COUNT, FIRST_BE, FUNC, Header, LAST_BE, LENGTH, LOWER_ADDRESS, OFFSET, POISONED,
    REQUESTER, STATUS, TAG, WRITE,
};
use super::link::Tlp;

/// Requester: a core behind the root complex.
const ROOT: u64 = 0x0008;
/// Tags that the host uses, in turn.
const TAGS: u64 = 32;

/// A read that the card has to complete: its header, and the requested bytes.
struct Asked {
    header: Header,
    len: usize,
}

/// The request, and its completion.
#[derive(Default)]
pub(super) struct Registers {
    next: u64,
    asked: Option<Asked>,
    pub(super) answer: Option<Vec<u8>>,
}

impl Registers {
    /// A write of some bytes.
    pub(super) fn write(function: u8, bar: u8, at: usize, bytes: &[u8]) -> Tlp {
        let mut data = vec![0; at % 4];
        data.extend_from_slice(bytes);
        data.resize(data.len().next_multiple_of(4), 0);
        Tlp {
            header: request(function, bar, at, bytes.len()).with(WRITE, 1),
            data,
        }
    }

    /// A read of some bytes.
    pub(super) fn read(&mut self, function: u8, bar: u8, at: usize, len: usize) -> Tlp {
        self.next = (self.next + 1) % TAGS;
        let header = request(function, bar, at, len).with(TAG, self.next);
        self.asked = Some(Asked { header, len });
        self.answer = None;
        Tlp {
            header,
            data: Vec::new(),
        }
    }

    /// The card has completed a read.
    ///
    /// # Errors
    /// The error of the completion.
    pub(super) fn answered(&mut self, answer: &Tlp) -> Result<(), &'static str> {
        let asked = self
            .asked
            .take()
            .ok_or("a completion without a pending read")?;
        let (of, is) = (asked.header, answer.header);
        let into = of.get(FIRST_BE).trailing_zeros() as usize;
        let bytes = answer.data.get(into..into + asked.len).unwrap_or_default();
        // Like a root complex: an unsupported request reads as ones.
        let failed = is.get(STATUS) != 0 || bytes.is_empty();
        self.answer = Some(if failed {
            vec![0xff; asked.len]
        } else {
            bytes.to_vec()
        });
        let same = [TAG, REQUESTER, FUNC]
            .iter()
            .all(|&field| of.get(field) == is.get(field));
        if !same {
            return Err("a register's completion is not that of its request");
        }
        let known = [
            LOWER_ADDRESS,
            BYTE_COUNT,
            LENGTH,
            STATUS,
            TAG,
            REQUESTER,
            FUNC,
        ];
        if is.without(&known) != 0 || is.get(POISONED) != 0 {
            return Err("a register's completion has fields that must be 0");
        }
        let place = (of.get(OFFSET) + into as u64) & 0x7f;
        let length = if failed { 0 } else { of.get(LENGTH) };
        if (is.get(LOWER_ADDRESS), is.get(BYTE_COUNT), is.get(LENGTH))
            != (place, asked.len as u64, length)
        {
            return Err("a register's completion is of other bytes");
        }
        Ok(())
    }
}

/// The header of an access of `len` bytes, which lie in at most 16 DWs.
fn request(function: u8, bar: u8, at: usize, len: usize) -> Header {
    let (begin, end) = (at % 4, at % 4 + len);
    let dws = end.div_ceil(4);
    let all = 0xf_u64;
    let first = all << begin & all;
    let last = all >> (dws * 4 - end);
    let (first, last) = if dws == 1 {
        (first & last, 0)
    } else {
        (first, last)
    };
    Header::default()
        .with(OFFSET, (at - begin) as u64)
        .with(REQUESTER, ROOT)
        .with(LENGTH, dws as u64)
        .with(FIRST_BE, first)
        .with(LAST_BE, last)
        .with(BAR, bar.into())
        .with(FUNC, function.into())
}
