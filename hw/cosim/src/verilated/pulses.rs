//! Pulses at the timing connector.

use std::collections::VecDeque;

use pollux_card_model::TimingInput;

use crate::pins::NetIn;

/// Cycles of `clk_net` that a pulse at the timing connector is high, and then low.
const PULSE: u8 = 2;

/// The timing connector: pulses one after the other.
#[derive(Default)]
pub(super) struct Pulses {
    pub(super) queue: VecDeque<TimingInput>,
    /// Remaining cycles of the current pulse, high and low.
    left: u8,
}

impl Pulses {
    pub(super) fn drive(&mut self, pins: &mut NetIn) {
        if self.left == 1 {
            self.queue.pop_front();
        }
        if self.left <= 1 {
            self.left = if self.queue.is_empty() {
                0
            } else {
                2 * PULSE + 1
            };
        }
        self.left = self.left.saturating_sub(1);
        let high = self.left > PULSE - 1;
        let on = |input| u8::from(high && self.queue.front() == Some(&input));
        pins.ttc_clock = on(TimingInput::Clock);
        pins.ttc_start = on(TimingInput::Start);
        pins.ttc_end = on(TimingInput::End);
        pins.ttc_trigger = on(TimingInput::Trigger);
    }
}
