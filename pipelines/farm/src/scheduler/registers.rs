//! Registers of the scheduler, numbered as in the thesis (VII.C).

use super::config::Mode;
use super::gather::Source;
use super::state::Scheduler;
use crate::role::Outbox;
use crate::time::Time;

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// 1: 1 enables the scheduler. Read and write.
    Enable,
    /// 2: source of triggers. 0 and 1: internal, 2: port, 3: by hand. Read and write.
    TriggerSource,
    /// 3: 1 enables triggers. Read and write.
    TriggerEnable,
    /// 4: state of the scheduler. 0: idle, 1: waits for a receive buffer, 2: ready; 3, sending, is
    /// never seen, because a message leaves within a call.
    State,
    /// 5: 0 passes busy columns, 1 waits for them. Read and write.
    Mode,
    /// 6: flow control messages that returned otherwise than they were sent.
    RingErrors,
    /// 7: a write triggers an event, whatever is written. Write only.
    HandTrigger,
    /// 8: bit 0: triggers were refused because the buffer of pending events was full. Bits 1 to 3,
    /// the queues of the flow control network, do not overflow here.
    Overflow,
    /// 9: events that were triggered.
    Event,
    /// 10: how often a busy column was passed.
    Passed,
    /// 11: most of the buffer of pending events that was ever used: 0, 1, 3, 7 and 15 for up to
    /// 25 %, 50 %, 75 %, 87.5 % and more.
    PendingPeak,
    /// 12: feedback messages in the input buffer: 0, because each is queued as it is received.
    InputUsed,
    /// 13: messages in the output buffer of the ring: 0, because the carrier has them.
    OutputUsed,
    /// 14: copies of messages that are in the ring.
    CopiesUsed,
    /// 15: messages in the input buffer of the ring: 0, because each is taken as it is received.
    ReturnedUsed,
    /// 16: events that wait for a receive buffer; here MEPs.
    PendingUsed,
    /// 17: free receive buffers of a column.
    ColumnUsed(u8),
    /// 18: address at which feedback arrives. Here a carrier brings it: 0.
    FeedbackAddress,
}

/// A register that cannot be used so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// There is no such register.
    #[error("register {0}: there are 1 to 18")]
    Number(u8),
    /// There is no such column.
    #[error("register 17 of column {0}: the farm has fewer columns")]
    Column(u8),
    /// It can only be read.
    #[error("register {0} is read only")]
    ReadOnly(u8),
    /// It can only be written.
    #[error("register {0} is write only")]
    WriteOnly(u8),
    /// A value that it does not take.
    #[error("register {register} does not take the value {value}")]
    Value {
        /// The register.
        register: u8,
        /// The value.
        value: u32,
    },
}

impl Register {
    /// The register of a number; `column` is used by number 17 alone.
    ///
    /// # Errors
    /// A number that no register has.
    pub fn new(number: u8, column: u8) -> Result<Self, RegisterError> {
        Ok(match number {
            1 => Self::Enable,
            2 => Self::TriggerSource,
            3 => Self::TriggerEnable,
            4 => Self::State,
            5 => Self::Mode,
            6 => Self::RingErrors,
            7 => Self::HandTrigger,
            8 => Self::Overflow,
            9 => Self::Event,
            10 => Self::Passed,
            11 => Self::PendingPeak,
            12 => Self::InputUsed,
            13 => Self::OutputUsed,
            14 => Self::CopiesUsed,
            15 => Self::ReturnedUsed,
            16 => Self::PendingUsed,
            17 => Self::ColumnUsed(column),
            18 => Self::FeedbackAddress,
            other => return Err(RegisterError::Number(other)),
        })
    }
}

impl Scheduler {
    /// Reads a register. Counters wrap at 32 bits.
    ///
    /// # Errors
    /// A register that can only be written, or a column that is not there.
    pub fn read(&self, register: Register) -> Result<u32, RegisterError> {
        let value = match register {
            Register::Enable => self.enabled.into(),
            Register::TriggerSource => match self.triggers.selected {
                Source::Internal => 0,
                Source::External => 2,
                Source::Hand => 3,
            },
            Register::TriggerEnable => self.triggers.enabled.into(),
            Register::State => match (self.enabled, self.ready) {
                (false, _) => 0,
                (true, None) => 1,
                (true, Some(_)) => 2,
            },
            Register::Mode => match self.columns.mode() {
                Mode::Skip => 0,
                Mode::Wait => 1,
            },
            Register::RingErrors => self.counters.flow.errors,
            Register::HandTrigger => return Err(RegisterError::WriteOnly(7)),
            Register::Overflow => {
                let refused = &self.counters.triggers;
                u64::from(refused.pending_full + refused.in_flight_full > 0)
            }
            Register::Event => self.counters.triggers.taken,
            Register::Passed => self.columns.passed(),
            Register::PendingPeak => self.pending_peak(),
            Register::InputUsed
            | Register::OutputUsed
            | Register::ReturnedUsed
            | Register::FeedbackAddress => 0,
            Register::CopiesUsed => self.copies() as u64,
            Register::PendingUsed => self.pending() as u64,
            Register::ColumnUsed(column) => {
                if usize::from(column) >= self.topology().columns() {
                    return Err(RegisterError::Column(column));
                }
                self.free(column) as u64
            }
        };
        Ok(value as u32)
    }

    /// Writes a register.
    ///
    /// # Errors
    /// A register that can only be read, or a value that it does not take.
    pub fn write(
        &mut self,
        register: Register,
        value: u32,
        now: Time,
        out: &mut impl Outbox,
    ) -> Result<(), RegisterError> {
        let refused = |register| RegisterError::Value { register, value };
        let flag = |register| match value {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(refused(register)),
        };
        match register {
            Register::Enable => self.enable(flag(1)?, now, out),
            Register::TriggerSource => self.select(match value {
                0 | 1 => Source::Internal,
                2 => Source::External,
                3 => Source::Hand,
                _ => return Err(refused(2)),
            }),
            Register::TriggerEnable => self.enable_triggers(flag(3)?),
            Register::Mode => {
                let mode = if flag(5)? { Mode::Wait } else { Mode::Skip };
                self.columns.set_mode(mode);
                self.serve(now, out);
            }
            Register::HandTrigger => {
                self.trigger(Source::Hand, 1, now, out);
            }
            Register::State => return Err(RegisterError::ReadOnly(4)),
            Register::RingErrors => return Err(RegisterError::ReadOnly(6)),
            Register::Overflow => return Err(RegisterError::ReadOnly(8)),
            Register::Event => return Err(RegisterError::ReadOnly(9)),
            Register::Passed => return Err(RegisterError::ReadOnly(10)),
            Register::PendingPeak => return Err(RegisterError::ReadOnly(11)),
            Register::InputUsed => return Err(RegisterError::ReadOnly(12)),
            Register::OutputUsed => return Err(RegisterError::ReadOnly(13)),
            Register::CopiesUsed => return Err(RegisterError::ReadOnly(14)),
            Register::ReturnedUsed => return Err(RegisterError::ReadOnly(15)),
            Register::PendingUsed => return Err(RegisterError::ReadOnly(16)),
            Register::ColumnUsed(_) => return Err(RegisterError::ReadOnly(17)),
            Register::FeedbackAddress => return Err(RegisterError::ReadOnly(18)),
        }
        Ok(())
    }

    /// Copies of messages that are in the ring.
    #[must_use]
    pub fn copies(&self) -> usize {
        let kept = self.flights.oldest()..self.unsent;
        kept.filter(|&mep| self.flights.look(mep).is_some_and(|flight| flight.expected))
            .count()
    }

    fn pending_peak(&self) -> u64 {
        let (peak, all) = (self.counters.pending_peak * 8, self.config.pending as u64);
        let reached = [2, 4, 6, 7].iter().filter(|&eighths| peak > all * eighths);
        (1 << reached.count()) - 1
    }
}
