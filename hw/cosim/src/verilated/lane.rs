//! A lane of the PCS from its RTL behind its shim (`shim/lane.h`), and the line between two of them.

use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::PoisonError;

use super::model::ONE;

/// XGMII to send, the reset and the test pattern, on `clk_net`; a received block, on the received clock.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct LaneIn {
    pub(super) txd: u64,
    pub(super) rx_data: u64,
    pub(super) txc: u8,
    pub(super) rx_header: u8,
    pub(super) reset: u8,
    pub(super) prbs31_tx: u8,
    pub(super) prbs31_rx: u8,
    unused: [u8; 3],
}

/// Received XGMII, the block to send, state and counts (`pcs_pkg`), on `clk_net`; the boundary is to move, on
/// the received clock.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct LaneOut {
    pub(super) rxd: u64,
    pub(super) tx_data: u64,
    pub(super) inc: u32,
    pub(super) status: u8,
    pub(super) rxc: u8,
    pub(super) tx_header: u8,
    pub(super) slip: u8,
}

impl LaneOut {
    /// The boundary of blocks is known, and words arrive.
    pub(super) fn is_locked(&self) -> bool {
        self.status & 4 != 0
    }
}

// The structures have no padding, so that C sees the same.
const _: () = assert!(size_of::<LaneIn>() == 24 && size_of::<LaneOut>() == 24);

mod sys {
    use std::ffi::c_int;

    use super::{LaneIn, LaneOut};

    #[repr(C)]
    pub(super) struct Lane {
        private: [u8; 0],
    }

    unsafe extern "C" {
        pub(super) fn pollux_lane_new(seed: u32) -> *mut Lane;
        pub(super) fn pollux_lane_free(lane: *mut Lane);
        pub(super) fn pollux_lane_in(lane: *mut Lane, pins: *const LaneIn);
        pub(super) fn pollux_lane_clk_net(lane: *mut Lane, level: c_int);
        pub(super) fn pollux_lane_clk_rx(lane: *mut Lane, level: c_int);
        pub(super) fn pollux_lane_eval(lane: *mut Lane, ps: u64);
        pub(super) fn pollux_lane_out(lane: *const Lane, pins: *mut LaneOut);
    }
}

/// A lane. Its state changes only by [`eval`](Self::eval).
pub(super) struct Lane(NonNull<sys::Lane>);

// SAFETY: as for `Model`: a lane shares nothing with another, and is of no thread.
unsafe impl Send for Lane {}

impl Lane {
    /// A lane in which everything without a reset has an initial value by the seed.
    pub(super) fn new(seed: u64) -> Self {
        // As for `Model`: the simulator seeds random numbers by a counter of the process.
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: takes any number; returns a new lane with one owner.
        let made = unsafe { sys::pollux_lane_new((seed ^ seed >> 32) as u32) };
        match NonNull::new(made) {
            Some(lane) => Self(lane),
            // C++ throws before it returns that, and is then at its end.
            None => std::process::abort(),
        }
    }

    pub(super) fn drive(&mut self, pins: &LaneIn) {
        // SAFETY: the lane is ours; the pins are borrowed for the call, which copies them.
        unsafe { sys::pollux_lane_in(self.0.as_ptr(), pins) }
    }

    pub(super) fn set_clk_net(&mut self, level: bool) {
        // SAFETY: the lane is ours.
        unsafe { sys::pollux_lane_clk_net(self.0.as_ptr(), level.into()) }
    }

    pub(super) fn set_clk_rx(&mut self, level: bool) {
        // SAFETY: the lane is ours.
        unsafe { sys::pollux_lane_clk_rx(self.0.as_ptr(), level.into()) }
    }

    pub(super) fn eval(&mut self, ps: u64) {
        // SAFETY: the lane is ours.
        unsafe { sys::pollux_lane_eval(self.0.as_ptr(), ps) }
    }

    pub(super) fn out(&self) -> LaneOut {
        let mut pins = LaneOut::default();
        // SAFETY: the lane is ours; all fields of the pins are numbers, of which the call sets some.
        unsafe { sys::pollux_lane_out(self.0.as_ptr(), &raw mut pins) };
        pins
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // SAFETY: the lane is ours, and this is its last use.
        unsafe { sys::pollux_lane_free(self.0.as_ptr()) }
    }
}

/// Bits of a block: header and data.
const BLOCK: u32 = 66;

/// Bits from one transceiver to another, as blocks, whose boundary moves by a bit at each slip.
#[derive(Default)]
pub(super) struct Line {
    blocks: VecDeque<u128>,
    offset: u32,
}

impl Line {
    /// A line in which some blocks are on their way, and whose receiver begins within one.
    pub(super) fn new(delay: usize, offset: u32) -> Self {
        let offset = offset % BLOCK;
        Self {
            blocks: std::iter::repeat_n(0, delay).collect(),
            offset,
        }
    }

    /// Blocks that are on their way.
    pub(super) fn waiting(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// A block enters, the header first; the next one leaves.
    pub(super) fn pass(&mut self, (header, data): (u8, u64), slip: bool) -> (u8, u64) {
        self.blocks
            .push_back(u128::from(data) << 2 | u128::from(header & 3));
        if slip {
            self.offset += 1;
        }
        if self.offset == BLOCK {
            self.offset = 0;
            self.blocks.pop_front();
        }
        // A block that begins within one ends within the next, so that one has to wait from now on.
        if self.offset != 0 && self.blocks.len() == 1 {
            return (0, 0);
        }
        let first = self.blocks.pop_front().unwrap_or(0) >> self.offset;
        let next = self.blocks.front().copied().unwrap_or(0);
        let block = match self.offset {
            0 => first,
            offset => first | next << (BLOCK - offset),
        };
        ((block & 3) as u8, (block >> 2) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_moves_the_boundary_by_a_bit() {
        let mut line = Line::new(2, 65);
        let sent: Vec<_> = (1..200_u64)
            .map(|i| (1, i.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            .collect();
        let mut came: Vec<_> = sent.iter().map(|&block| line.pass(block, false)).collect();
        assert!(!came.contains(&sent[20]));
        // The boundary is a bit before that of a block.
        came.extend(
            sent.iter()
                .enumerate()
                .map(|(i, &block)| line.pass(block, i == 0)),
        );
        assert_eq!(
            came[came.len() - 20..],
            sent[sent.len() - 21..sent.len() - 1]
        );
    }

    /// On a line where nothing waits too: each bit arrives once, and behind as many slips as there are bits in a
    /// block it is as direct as before.
    #[test]
    fn a_direct_line_slips_too() {
        let mut line = Line::default();
        let sent: Vec<u64> = (1..200)
            .map(|i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .collect();
        assert_eq!(line.pass((1, sent[0]), false), (1, sent[0]));
        assert_eq!(line.pass((1, sent[1]), true), (0, 0));
        for both in sent[1..100].windows(2) {
            // The header's second bit is 0, the next one's first bit is 1.
            let expected = ((both[0] << 1 & 2) as u8, both[0] >> 1 | 1 << 63);
            assert_eq!(line.pass((1, both[1]), false), expected);
        }
        (0..65).for_each(|_| {
            line.pass((1, 0), true);
        });
        assert_eq!(line.waiting(), 0);
        assert_eq!(line.pass((1, sent[3]), false), (1, sent[3]));
    }
}
