//! Receive side: one queue's share of the records of a file.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use pollux_mempool::time::{Tsc, WireTime};
use pollux_mempool::{BurstMut, MbufFlags, PoolCache};

use super::error::CaptureError;
use super::reader::Reader;
use super::trouble::Trouble;
use crate::arrival::ArrivalTime;
use crate::clock::{Clock, TscClock};
use crate::driver::{Origin, RxDriver};
use crate::ledger::{Cause, Tally};
use crate::net::{ParseOptions, flow, parse};
use crate::port::RxState;

/// Maximum number of records that one poll examines: a queue whose flows are rare in the file
/// returns to its loop in bounded time.
const LOOK: usize = 256;

/// Replay at the recorded spacing. All queues share the time of the first poll.
pub(super) struct Pace {
    pub(super) started: Arc<OnceLock<Tsc>>,
}

impl Pace {
    fn is_due(&self, clock: TscClock, now: Tsc, since_first: WireTime, time: WireTime) -> bool {
        let started = *self.started.get_or_init(|| now);
        clock.to_ns(now.since(started)) >= time.since(since_first)
    }
}

#[repr(align(128))] // as CachePadded: no line shared with another loop
pub(super) struct Rx {
    pub(super) reader: Reader,
    pub(super) path: PathBuf,
    pub(super) queue: u16,
    pub(super) queues: u16,
    pub(super) pace: Option<Pace>,
    pub(super) clock: TscClock,
    /// Longest frame for which buffers are guaranteed, in bytes.
    pub(super) longest: usize,
    /// Buffer in which frames of other link types get their Ethernet header.
    pub(super) scratch: Vec<u8>,
    pub(super) state: RxState,
    /// Whether a record was of this queue.
    pub(super) has_own: bool,
    /// Whether a queue has found the file damaged: all queues do that read so far.
    pub(super) is_damaged: Arc<AtomicBool>,
    pub(super) trouble: Trouble,
}

impl RxDriver for Rx {
    fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        if self.state == RxState::Exhausted {
            return 0;
        }
        let before = out.len();
        let now = self.clock.now();
        let (mut frames, mut bytes) = (0, 0);
        for _ in 0..LOOK {
            if out.free() == 0 {
                break;
            }
            let first = self.reader.first();
            let record = match self.reader.peek() {
                Ok(Some(record)) => record,
                Ok(None) => {
                    self.state = RxState::Exhausted;
                    break;
                }
                Err(error) => {
                    self.give_up(&error, tally);
                    break;
                }
            };
            if let Some(pace) = &self.pace
                && !pace.is_due(self.clock, now, first.unwrap_or(record.time), record.time)
            {
                break;
            }
            let ethernet = record.link.to_ethernet(record.data, &mut self.scratch);
            if owner(ethernet.unwrap_or_default(), self.queues) != self.queue {
                self.reader.advance();
                // Another pass over the file has nothing for it either, and it may be one of passes without end: who
                // takes frames from all queues by their times would wait for it.
                if !self.has_own && self.reader.has_passed() {
                    self.state = RxState::Exhausted;
                    break;
                }
                continue;
            }
            self.has_own = true;
            let received = match ethernet {
                Err(cause) => Err(cause),
                // The capture truncated the frame: the rest is not the frame that was sent.
                Ok(_) if record.original > record.data.len() => Err(Cause::Oversize),
                Ok(frame) if frame.len() > self.longest => Err(Cause::Oversize),
                Ok(frame) => match cache.alloc_from(frame) {
                    Some(mbuf) => Ok(mbuf),
                    // A recording can wait: the next poll gets the same record.
                    None => break,
                },
            };
            frames += 1;
            bytes += record.original.max(record.data.len()) as u64;
            match received {
                Ok(mut mbuf) => {
                    origin.next = record.index as u32;
                    origin.stamp(&mut mbuf, now);
                    mbuf.set_wire_time(record.time);
                    mbuf.add_flags(MbufFlags::RECORDED);
                    // The frame fits: the capacity was checked at the start of the loop.
                    drop(out.push(mbuf));
                }
                Err(cause) => tally.count_dropped(cause, 1),
            }
            self.reader.advance();
        }
        tally.count_from_wire(frames, bytes);
        out.len() - before
    }

    fn state(&self) -> RxState {
        self.state
    }

    fn arrival_time(&self) -> ArrivalTime {
        ArrivalTime::Read
    }
}

impl Rx {
    /// The rest of the file is lost, and its number of frames is unknown; one frame, counted by the
    /// first queue that comes there, represents them in the ledger.
    #[cold]
    fn give_up(&mut self, error: &CaptureError, tally: &mut Tally) {
        self.state = RxState::Exhausted;
        if !self.is_damaged.swap(true, Ordering::Relaxed) {
            tally.count_from_wire(1, 0);
            tally.count_dropped(Cause::DeviceError, 1);
            tracing::warn!("{} {error}", self.path.display());
            self.trouble
                .report(format!("{} {error}", self.path.display()));
        }
    }
}

/// The queue of a frame, by its flow.
fn owner(frame: &[u8], queues: u16) -> u16 {
    if queues == 1 {
        return 0;
    }
    flow::queue_of(&parse(frame, frame.len(), &ParseOptions::TRUSTED), queues)
}
