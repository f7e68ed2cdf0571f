//! The loop that takes the images: receives, unless others do, and runs the stages.

use std::sync::Arc;

use pollux_images::receive::{Image, ImageReader, Stored};
use pollux_images::stages::{Desk, Work};
use pollux_mempool::time::{Ns, Tsc};
use pollux_pipelines::{Batch, Moment};
use pollux_pmd::lcore::idle::Idle;
use pollux_pmd::lcore::{JitterMeter, StopFlag};
use pollux_pmd::{Clock, RxQueue, TscClock, TxQueue};

use super::counters::ImageCounts;
use super::dark::Dark;
use super::observe::Observe;
use super::place::Place;
use super::receive_loop::CHORES;
use super::received::ReceivedUntil;
use super::reception::Reception;
use super::sink::ImageSink;
use super::workers::Chain;

/// Most images in a round, between two polls of the queues.
const ROUND: usize = 8;

/// For so long the end of a run waits for workers and outputs.
const DRAIN: Ns = Ns(5_000_000_000);

/// Everything that the loop owns.
pub struct ImageLoop<P, L, O> {
    /// The queues, unless receive loops have all of them.
    pub reception: Option<Reception<L>>,
    /// Of all loops that receive.
    pub received: Vec<ReceivedUntil>,
    pub reader: ImageReader<P>,
    pub desk: Desk<P>,
    pub chain: Chain<P>,
    pub sink: ImageSink<P, O>,
    pub dark: Option<Dark>,
    pub counts: Arc<ImageCounts>,
    /// Rounds that empty full receive rings.
    pub last_rounds: usize,
    /// End after so many images.
    pub most: Option<u64>,
    pub clock: TscClock,
    pub jitter: JitterMeter,
    pub idle: Idle,
    /// Ends the loop, after all receive loops have ended.
    pub stop: StopFlag,
    /// The ports are recordings, which wait.
    pub recorded: bool,
    /// The loops share CPUs.
    pub gives_way: bool,
    /// An image that waits until there is less work under way.
    pub waiting: Option<Image<P>>,
    pub batch: Batch<Work<P>>,
}

impl<P: Stored, L: Place, O: Observe<P>> ImageLoop<P, L, O> {
    /// Runs until it is stopped, the recordings have ended, or there have been enough images; returns
    /// its queues.
    pub fn run(mut self, start: Tsc) -> (Vec<RxQueue>, Vec<TxQueue>) {
        self.begin(start);
        self.work(start);
        self.end(start);
        self.reception.map(Reception::finish).unwrap_or_default()
    }

    /// Prepares the thread of the loop.
    fn begin(&mut self, start: Tsc) {
        self.sink.begin(start);
        if let Some(reception) = &self.reception {
            reception.begin();
        }
    }

    /// The loop itself: nothing but work, unless it shares its CPU.
    fn work(&mut self, start: Tsc) {
        let chores = self.clock.to_cycles(CHORES);
        let mut next_chores = start;
        while !self.stop.is_set() {
            let now = self.jitter.tick();
            let busy = self.round(start, now);
            if self.has_enough() {
                return;
            }
            if !busy && self.has_ended() {
                return;
            }
            self.rest(busy);
            if now >= next_chores {
                next_chores = Tsc(now.0 + chores);
                if let Some(reception) = &mut self.reception {
                    reception.chores();
                }
            }
        }
    }

    fn has_ended(&self) -> bool {
        self.reception.as_ref().is_some_and(Reception::has_ended)
    }

    fn rest(&mut self, busy: bool) {
        let Some(reception) = &mut self.reception else {
            if !busy && self.gives_way {
                std::thread::yield_now();
            }
            return;
        };
        if busy {
            self.idle.worked(reception.queues());
            return;
        }
        if self.gives_way {
            std::thread::yield_now();
        }
        if self.idle.rest(&self.clock, reception.queues()) {
            self.jitter.skip();
        }
    }

    /// Whether the loop may take images: no stage is full, and no output that is waited for.
    fn has_room(&mut self) -> bool {
        self.sink.flush() && self.chain.has_room(&mut self.sink)
    }

    /// Whether there have been as many images as the run is to have.
    fn has_enough(&self) -> bool {
        self.most
            .is_some_and(|most| self.counts.built.get() >= most)
    }

    fn moment(&self, start: Tsc, now: Tsc) -> Moment {
        Moment(self.clock.to_ns(now.since(start)).0)
    }

    /// One round; whether there was anything to do.
    fn round(&mut self, start: Tsc, now: Tsc) -> bool {
        let moment = self.moment(start, now);
        let has_room = self.has_room();
        let mut busy = false;
        // Without room packets wait in the receive rings, where a loss has a cause. A recording waits also
        // while there is work on the largest number of images.
        if let Some(reception) = &mut self.reception {
            busy = if has_room && (self.waiting.is_none() || !self.recorded) {
                reception.poll(now, moment)
            } else {
                reception.hold(moment)
            };
        }
        if has_room {
            let received = self.received.iter().map(ReceivedUntil::get).min();
            busy |= self.take_images(received.unwrap_or(moment));
        }
        self.chain.tick(moment, &mut self.sink);
        busy
    }

    /// Takes the images that are complete, or late at `time`; whether there was one.
    fn take_images(&mut self, time: Moment) -> bool {
        let mut any = false;
        for _ in 0..ROUND {
            if self.has_enough() {
                break;
            }
            let next = self.waiting.take().or_else(|| self.reader.poll(time));
            let Some(image) = next else { break };
            if let Some(dark) = &mut self.dark
                && dark.is_dark(image.number())
            {
                dark.follow(&image, &self.counts.dark_pixels);
                self.counts.dark.add(1);
                any = true;
                continue;
            }
            match self.desk.begin(image) {
                Ok(work) => {
                    self.counts.built.add(1);
                    // The batch is empty.
                    let _ = self.batch.push(work);
                    self.chain.process(&mut self.batch, &mut self.sink);
                    self.batch.clear();
                    any = true;
                    if !self.has_room() {
                        break;
                    }
                }
                Err(image) => {
                    self.waiting = Some(image);
                    break;
                }
            }
        }
        any
    }

    /// Receives what is in the queues: as many packets as they hold, or until one poll finds none.
    fn empty_queues(&mut self, start: Tsc, from: Tsc, most: u64) {
        let mut rounds = 0;
        loop {
            let now = self.clock.now();
            let has_room = self.has_room();
            let busy = self.round(start, now);
            rounds += usize::from(has_room);
            if has_room && !busy || rounds > self.last_rounds || now.since(from) > most {
                return;
            }
        }
    }

    /// Takes what is in the queues, closes all images, and waits for workers and outputs, as long as there
    /// is progress. What is left is counted as overrun.
    fn end(&mut self, start: Tsc) {
        let patience = self.clock.to_cycles(DRAIN);
        let mut progress = self.clock.now();
        if !self.has_enough() {
            if let Some(reception) = &mut self.reception {
                reception.close();
            }
            self.empty_queues(start, progress, patience);
            self.reader.close_all();
        }
        let mut done = 0;
        loop {
            let now = self.clock.now();
            let room = self.has_room();
            let any = room && self.take_images(Moment(u64::MAX));
            self.chain.tick(self.moment(start, now), &mut self.sink);
            if room && !any && (self.waiting.is_none() || self.has_enough()) {
                break;
            }
            let ended = self.counts.ended();
            if any || ended != done {
                (progress, done) = (now, ended);
            } else if now.since(progress) > patience {
                break;
            }
            if !any {
                std::thread::yield_now();
            }
        }
        self.chain.finish(&mut self.sink);
        let from = self.clock.now();
        while !self.has_room() && self.clock.now().since(from) <= patience {
            std::thread::yield_now();
        }
        let held = self.chain.take_held().count();
        let untaken = if self.has_enough() {
            0
        } else {
            let rest = std::iter::from_fn(|| self.reader.poll(Moment(u64::MAX)));
            self.waiting.take().into_iter().count() + rest.count()
        };
        self.sink.give_up(held + untaken);
    }
}

#[cfg(test)]
mod tests;
