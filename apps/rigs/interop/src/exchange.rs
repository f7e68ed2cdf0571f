//! The loop: sends numbered frames, at most a window ahead of the returned ones, and checks the
//! received frames off.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::mempool::{Burst, Mempool, PoolCache};
use pollux_pmd::{Cause, Ledger, RxQueue, Tally, TxQueue};
use serde::Serialize;

use crate::frames::{Frames, Verdict};

/// Frames moved by one call.
const BURST: usize = 32;

/// How long nothing comes back before what is on its way is given up, where loss is tolerated.
const GIVE_UP: Duration = Duration::from_millis(100);

/// How long is waited at the end for what was not sent to come.
const SETTLE: Duration = Duration::from_millis(20);

/// How long is waited at the end for what is on its way, since the last that came, where loss is
/// tolerated.
const LINGER: Duration = Duration::from_secs(1);

/// What is to be done.
pub struct Job {
    /// Frames to send; 0 to receive only.
    pub send: u64,
    /// Frames to receive; 0 to send only.
    pub receive: u64,
    /// Most frames sent that have not come back, where they are to.
    pub window: u64,
    /// Give up when nothing has moved for so long.
    pub patience: Duration,
    /// End after this time, if not before.
    pub limit: Option<Duration>,
    /// Frames may be lost (the peer is killed, say): go on with new ones.
    pub tolerate_loss: bool,
    /// Wait so long between bursts.
    pub pause: Duration,
}

/// What became of the frames.
#[derive(Debug, Default, Serialize)]
pub struct Outcome {
    /// Taken by the ports.
    pub sent: u64,
    /// Received, right in every byte.
    pub received: u64,
    /// Sent, to come back, and not come back.
    pub missing: u64,
    /// Ours, but wrong.
    pub corrupt: u64,
    /// Received once more.
    pub duplicate: u64,
    /// Frames that are none of ours.
    pub foreign: u64,
    /// Milliseconds of the longest time between two frames that came and were right.
    pub longest_silence_ms: u64,
    /// Right frames that came after that silence, late ones too.
    pub received_after_silence: u64,
}

impl Outcome {
    /// So many right frames have come at once, and the last ones came at the time that is renewed.
    fn count_silence(&mut self, came: &mut Option<Instant>, frames: u64) {
        let now = Instant::now();
        let before = came.replace(now).unwrap_or(now);
        let silence = (now - before).as_millis() as u64;
        if silence > self.longest_silence_ms {
            self.longest_silence_ms = silence;
            self.received_after_silence = 0;
        }
        self.received_after_silence += frames;
    }
}

/// Sends and receives.
pub struct Exchange<'a> {
    rx: &'a mut [RxQueue],
    tx: &'a mut [TxQueue],
    cache: PoolCache,
    tally: Tally,
    outcome: Outcome,
    /// Numbers that are on their way.
    open: HashSet<u64>,
    /// Numbers seen, where only receiving.
    seen: HashSet<u64>,
    /// When something was sent or came.
    last: Instant,
    /// When a right frame came.
    came: Option<Instant>,
}

impl<'a> Exchange<'a> {
    /// An exchange through these queues; what is received is counted in the ledger.
    ///
    /// # Errors
    /// No memory for a cache of the pool's buffers.
    pub fn new(
        pool: &Mempool,
        rx: &'a mut [RxQueue],
        tx: &'a mut [TxQueue],
        ledger: &mut Ledger,
    ) -> Result<Self> {
        let tally = Tally::new();
        ledger.add("judge", tally.view());
        Ok(Self {
            rx,
            tx,
            cache: pool.cache(256)?,
            tally,
            outcome: Outcome::default(),
            open: HashSet::new(),
            seen: HashSet::new(),
            last: Instant::now(),
            came: None,
        })
    }

    /// Runs the job to its end, its deadline, or the stop.
    ///
    /// # Errors
    /// A job that is none.
    pub fn run(mut self, job: &Job, frames: &mut Frames, stop: &StopFlag) -> Result<Outcome> {
        if job.receive == 0 && job.send == 0 {
            bail!("nothing to send and nothing to receive");
        }
        let both = job.send > 0 && job.receive > 0;
        let mut held: Vec<Burst<BURST>> = self.tx.iter().map(|_| Burst::new()).collect();
        let mut next = 0;
        self.last = Instant::now();
        let start = self.last;
        while !stop.is_set() && job.limit.is_none_or(|limit| start.elapsed() < limit) {
            let mut moved = false;
            for (k, burst) in held.iter_mut().enumerate() {
                let room = if both {
                    job.window - (self.open.len() as u64).min(job.window)
                } else {
                    BURST as u64
                };
                if burst.is_empty() {
                    for _ in 0..room.min(BURST as u64).min(job.send - next) {
                        let Some(mut mbuf) = self.cache.alloc_from(frames.make(next)) else {
                            break;
                        };
                        mbuf.set_checksum_request(frames.request());
                        if burst.push(mbuf).is_err() {
                            break;
                        }
                        if both {
                            self.open.insert(next);
                        }
                        next += 1;
                    }
                }
                // Also an empty one: what the kernel had no room for is tried again.
                let n = self.tx[k].tx(&mut self.cache, burst) as u64;
                self.outcome.sent += n;
                moved |= n > 0;
            }
            moved |= self.receive(frames, both);
            if moved {
                self.last = Instant::now();
            }
            let silence = self.last.elapsed();
            if job.tolerate_loss && silence > GIVE_UP && !self.open.is_empty() {
                self.outcome.missing += self.open.len() as u64;
                self.open.clear();
            }
            let all_sent = next == job.send && held.iter().all(|burst| burst.is_empty());
            let all_here = job.receive == 0
                || if both && job.tolerate_loss {
                    self.open.is_empty()
                } else {
                    self.outcome.received >= job.receive
                };
            let no_more = !self.rx.is_empty()
                && job.send == 0
                && self.rx.iter().all(|queue| queue.state().is_final());
            if all_sent && (all_here || no_more) {
                break;
            }
            if silence > job.patience {
                break;
            }
            if !moved {
                // For the other thread of this core, and for what else runs on this CPU.
                std::hint::spin_loop();
                std::thread::yield_now();
            }
            if !job.pause.is_zero() {
                std::thread::sleep(job.pause);
            }
        }
        for burst in &mut held {
            burst.clear();
        }
        self.settle(job, frames, both);
        self.outcome.missing += self.open.len() as u64;
        Ok(self.outcome)
    }

    /// What still comes is late, a duplicate, or one too many.
    fn settle(&mut self, job: &Job, frames: &mut Frames, both: bool) {
        let end = Instant::now();
        while both && end.elapsed() < SETTLE
            || job.tolerate_loss
                && !self.open.is_empty()
                && self.came.unwrap_or(end).max(end).elapsed() < LINGER
        {
            self.receive(frames, both);
            std::thread::yield_now();
        }
    }

    fn receive(&mut self, frames: &mut Frames, both: bool) -> bool {
        let mut burst = Burst::<BURST>::new();
        let mut any = false;
        for queue in &mut *self.rx {
            any |= queue.rx(&mut self.cache, &mut burst) > 0;
            let mut right = 0;
            for mbuf in burst.iter() {
                let outcome = &mut self.outcome;
                match frames.judge(mbuf) {
                    Verdict::Intact(number) => {
                        right += 1;
                        let new = if both {
                            self.open.remove(&number)
                        } else {
                            self.seen.insert(number)
                        };
                        if new {
                            outcome.received += 1;
                            self.tally.count_delivered(1);
                        } else {
                            outcome.duplicate += 1;
                            self.tally.count_dropped(Cause::Duplicate, 1);
                        }
                    }
                    Verdict::Corrupt => {
                        outcome.corrupt += 1;
                        self.tally.count_dropped(Cause::Malformed, 1);
                    }
                    Verdict::Foreign => {
                        outcome.foreign += 1;
                        self.tally.count_dropped(Cause::NotForUs, 1);
                    }
                }
            }
            self.cache.free_burst(&mut burst);
            if right > 0 {
                self.outcome.count_silence(&mut self.came, right);
            }
        }
        any
    }
}
