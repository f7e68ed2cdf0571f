//! Contents of messages: what this end sends, and the check of what it receives.

use anyhow::{Result, bail};
use pollux_rdma::Buffer;
use pollux_rdma::exchange::perftest::{Common, NOTE, Test};

/// What `serve` and `ping` note in an exchange with perftest, for each other: messages contain
/// [`Contents::Numbered`].
pub(super) const NOTE_OF_CONTENTS: [u8; NOTE] = *b"pollux 1";

/// Bytes that are compared at a time.
const PIECE: usize = 512;
/// Bytes of a page, as libibverbs' programs have them.
const PAGE: usize = 4096;
/// What libibverbs' ping-pong programs fill their buffers with.
const PINGPONG: u8 = 0x7b;
/// What received bytes are overwritten with once they are checked, so that a message that leaves them out is
/// wrong. None of the contents consist of it.
const CHECKED: u8 = 0xa5;

/// What the messages of a program contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    /// Not known, and not checked: perftest's are random.
    Random,
    /// Of `ibv_rc_pingpong` and `ibv_uc_pingpong`: 0x7b, with their option `-c` but for the first byte of a
    /// page, which is 0. A server sends back what it has received.
    Pingpong,
    /// Of `ib_write_lat`: zeros.
    Zeros,
    /// Of this program: each word of eight bytes is a number that its place determines.
    Numbered,
}

impl Contents {
    /// Contents of perftest's messages.
    pub(super) fn of(test: Test, common: &Common) -> Self {
        match test {
            _ if common.note == NOTE_OF_CONTENTS => Self::Numbered,
            Test::WriteLat => Self::Zeros,
            _ => Self::Random,
        }
    }

    pub(super) fn is_known(self) -> bool {
        self != Self::Random
    }

    /// A piece of them. The last message of those that overwrite each other is inverted.
    fn piece(self, at: usize, is_inverted: bool) -> [u8; PIECE] {
        let mut piece = [0; PIECE];
        match self {
            Self::Zeros => {}
            Self::Pingpong => piece[usize::from(at.is_multiple_of(PAGE))..].fill(PINGPONG),
            Self::Random | Self::Numbered => {
                // An odd factor: the words of a message of less than 2^64 bytes are all different.
                let words = (at as u64 / 8 + 1..).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                for (to, word) in piece.as_chunks_mut().0.iter_mut().zip(words) {
                    *to = u64::to_le_bytes(word);
                }
            }
        }
        if is_inverted {
            piece = piece.map(|byte| !byte);
        }
        piece
    }

    /// Writes a message.
    pub(super) fn fill(
        self,
        buffer: &Buffer,
        at: usize,
        len: usize,
        is_inverted: bool,
    ) -> Result<()> {
        for (offset, len) in pieces(len) {
            buffer.write(at + offset, &self.piece(offset, is_inverted)[..len])?;
        }
        Ok(())
    }

    /// Checks a message.
    pub(super) fn check(
        self,
        buffer: &Buffer,
        at: usize,
        len: usize,
        is_inverted: bool,
    ) -> Result<()> {
        if !self.is_known() {
            return Ok(());
        }
        let mut found = [0; PIECE];
        for (offset, part) in pieces(len) {
            let (found, wanted) = (&mut found[..part], self.piece(offset, is_inverted));
            buffer.read(at + offset, found)?;
            if self == Self::Pingpong && offset.is_multiple_of(PAGE) && found[0] == PINGPONG {
                found[0] = 0;
            }
            if let Some(n) = found
                .iter()
                .zip(&wanted)
                .position(|(found, wanted)| found != wanted)
            {
                bail!(
                    "byte {} of {len} is {:#04x} instead of {:#04x}: the data were damaged on the way, or \
                     the peer has others",
                    offset + n,
                    found[n],
                    wanted[n]
                );
            }
        }
        Ok(())
    }

    /// Overwrites a place for messages.
    pub(super) fn clear(self, buffer: &Buffer, at: usize, len: usize) -> Result<()> {
        if self.is_known() {
            for (offset, len) in pieces(len) {
                buffer.write(at + offset, &[CHECKED; PIECE][..len])?;
            }
        }
        Ok(())
    }
}

/// Offsets and lengths of a message's pieces.
fn pieces(len: usize) -> impl Iterator<Item = (usize, usize)> {
    let offsets = (0..len).step_by(PIECE);
    offsets.map(move |offset| (offset, PIECE.min(len - offset)))
}
