//! The poll loop of the trigger: receive, run the pipeline, answer; all on one core.

use std::sync::Arc;

use pollux_mempool::time::{Ns, Tsc};
use pollux_mempool::{Burst, Mbuf};
use pollux_na62::l0::{Decision, Frame, L0Stats};
use pollux_pipelines::{Batch, Moment, Pipeline};
use pollux_pmd::endpoint::{LaneFrame, Receiver, StreamFrame, leave_groups};
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::lcore::idle::Idle;
use pollux_pmd::{Cause, Clock, Count};

use crate::clock::RunClock;
use crate::decision_sink::DecisionSink;
use crate::input::{self, Input, Source};

/// Most frames that are taken from a queue at a time.
pub const MAX_BURST: usize = 32;

/// How often counters outside the process are read, and an unknown station is asked for.
const CHORES: Ns = Ns(100_000_000);

/// Free buffers that a loop keeps for itself.
pub const CACHE: usize = 512;

/// Longest sleep of an idle loop: events are closed by the clock too, some of them while nothing
/// comes.
pub const SLEEP: Ns = Ns(100_000);

/// How long the end waits for receive loops, at most: they look at their stop flag every 100 us.
const LAST_FRAMES: Ns = Ns(5_000_000_000);

/// All that the loop owns.
pub struct PollLoop {
    pub inputs: Vec<Input>,
    pub receiver: Receiver,
    pub pipeline: Pipeline<Frame, Decision>,
    pub stats: Arc<L0Stats>,
    pub sink: DecisionSink,
    /// Rounds in which no frames were taken because an output was full.
    pub output_stops: Arc<Count>,
    /// Frames to take from a queue at a time.
    pub burst: usize,
    /// All inputs are recordings: order and deadlines follow capture time.
    pub recorded: bool,
    /// Stop after so many events.
    pub max_events: Option<u64>,
    pub stop: StopFlag,
    pub clock: RunClock,
    /// What the loop does while nothing comes.
    pub idle: Idle,
    /// The receive loops, if there are any.
    pub receive_loops: Option<ReceiveLoops>,
}

/// How the trigger's loop stands to its receive loops.
pub struct ReceiveLoops {
    /// Ends them.
    pub stop: StopFlag,
    /// They share CPUs with it.
    pub gives_way: bool,
}

/// Why the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was told to.
    Stopped,
    /// All inputs came to their end.
    Exhausted,
    /// It has built as many events as were asked for.
    Enough,
}

/// What the loop gives back.
pub struct Finished {
    pub inputs: Vec<Input>,
    pub sink: DecisionSink,
    pub end: End,
}

/// The frame of a stream as the input of the pipeline.
#[inline]
fn frame_at(frame: StreamFrame, at: Moment) -> Frame {
    let StreamFrame {
        mbuf,
        stream,
        offset,
        len,
    } = frame;
    Frame {
        mbuf,
        stream,
        offset,
        len,
        at,
    }
}

impl PollLoop {
    /// Polls until there is a reason to end, then brings all that is under way to its end.
    pub fn run(mut self) -> Finished {
        let start = self.clock.now();
        let mut frames = Batch::with_capacity(MAX_BURST);
        let end = self.work(start, &mut frames);
        self.end_reception(start, end, &mut frames);
        self.pipeline.finish(&mut self.sink);
        self.sink.flush();
        self.receiver.finish(&mut self.sink.cache);
        let DecisionSink {
            endpoints, cache, ..
        } = &mut self.sink;
        let clock = &self.clock;
        leave_groups(endpoints, cache, || clock.to_ns(clock.now().since(start)));
        // What a recording had read ahead goes with its queue, uncounted by the pipeline.
        for input in &mut self.inputs {
            input.pending.abort(self.receiver.tally());
        }
        Finished {
            inputs: self.inputs,
            sink: self.sink,
            end,
        }
    }

    /// The loop itself, whose time begins at `start`: nothing but work. `frames` holds a burst.
    fn work(&mut self, start: Tsc, frames: &mut Batch<Frame>) -> End {
        let chores = self.clock.to_cycles(CHORES);
        let mut next_chores = start;
        loop {
            if self.stop.is_set() {
                return End::Stopped;
            }
            let now = self.sink.jitter.tick();
            if self.round(start, now, frames) {
                self.idle
                    .worked(self.inputs.iter_mut().filter_map(Input::queue));
            } else {
                if self.inputs.iter().all(Input::has_ended) {
                    return End::Exhausted;
                }
                if self.receive_loops.as_ref().is_some_and(|it| it.gives_way) {
                    std::thread::yield_now();
                }
                let queues = self.inputs.iter_mut().filter_map(Input::queue);
                if self.idle.rest(&self.clock, queues) {
                    self.sink.jitter.skip();
                }
            }
            // Not by decisions: how many are still with workers differs from run to run.
            let built = self.stats.events.built.get();
            if self.max_events.is_some_and(|max| built >= max) {
                return End::Enough;
            }
            if now >= next_chores {
                next_chores = Tsc(now.0 + chores);
                self.chores(self.moment(start, now));
            }
        }
    }

    fn moment(&self, start: Tsc, now: Tsc) -> Moment {
        Moment(self.clock.to_ns(now.since(start)).0)
    }

    /// One round; whether there was anything to do.
    #[inline]
    fn round(&mut self, start: Tsc, now: Tsc, frames: &mut Batch<Frame>) -> bool {
        let moment = self.moment(start, now);
        if !self.has_room(moment) {
            false
        } else if self.recorded {
            self.replay(frames)
        } else {
            self.poll(now, moment, frames)
        }
    }

    /// Whether the loop may take frames: no stage is full, and no output that a recording waits for.
    /// Otherwise frames stay in the receive rings, where a loss has a cause.
    #[inline]
    fn has_room(&mut self, now: Moment) -> bool {
        if !self.sink.has_room() {
            self.output_stops.add(1);
            return false;
        }
        if self.pipeline.has_room(&mut self.sink) {
            return true;
        }
        // The time lets a stage hand on what it has. That of a recording is the time of its frames.
        if self.recorded {
            self.pipeline.tick(Moment(0), &mut self.sink);
        } else {
            self.pipeline.tick(now, &mut self.sink);
            self.sink.flush();
        }
        false
    }

    /// One round over live queues, which began at `time`; whether there was anything to do.
    #[inline]
    fn poll(&mut self, time: Tsc, now: Moment, frames: &mut Batch<Frame>) -> bool {
        let mut busy = false;
        for input in &mut self.inputs {
            let sink = &mut self.sink;
            let (endpoints, cache) = (&mut sink.endpoints, &mut sink.cache);
            let (receiver, place) = (&mut self.receiver, input.place);
            // Frames fit: a batch holds a burst.
            match &mut input.source {
                Source::Queue(rx) => {
                    let mut burst = Burst::<MAX_BURST>::new();
                    if rx.rx_at(time, cache, &mut burst, self.burst) == 0 {
                        continue;
                    }
                    burst.iter().for_each(Mbuf::prefetch_read);
                    burst.take_all(|mbuf| {
                        let taken = receiver.receive(mbuf, Ns(now.0), place, endpoints, cache);
                        if let Some(taken) = taken {
                            let _ = frames.push(frame_at(taken, now));
                        }
                    });
                }
                Source::Lane(lane) => {
                    let any = lane.take(|LaneFrame { frame, .. }| {
                        let taken = receiver.route(frame, Ns(now.0), place, endpoints, cache);
                        if let Some(taken) = taken {
                            let _ = frames.push(frame_at(taken, now));
                        }
                    });
                    if !any {
                        continue;
                    }
                }
            }
            busy = true;
            Self::advance(&mut self.pipeline, receiver, sink, frames);
        }
        self.pipeline.tick(now, &mut self.sink);
        self.sink.flush();
        let DecisionSink {
            endpoints, cache, ..
        } = &mut self.sink;
        for endpoint in endpoints {
            endpoint.report_groups(Ns(now.0), cache);
        }
        busy
    }

    /// One round over recordings: the next frames in the order of capture. Answers leave in full
    /// packets, the same however fast frames are read, unless there is nothing to be read yet.
    fn replay(&mut self, frames: &mut Batch<Frame>) -> bool {
        let mut read = false;
        while !frames.is_full() {
            for input in &mut self.inputs {
                if input.pending.is_empty() && !input.is_final() {
                    read |= Self::read_ahead(input, self.burst, &mut self.receiver, &mut self.sink);
                }
                if input.pending.is_empty() && !input.is_final() {
                    // It paces itself, or waits for buffers or for its receive loop, or had only
                    // frames of no stream: its next frame may be the earliest.
                    let busy = !frames.is_empty();
                    Self::advance(
                        &mut self.pipeline,
                        &mut self.receiver,
                        &mut self.sink,
                        frames,
                    );
                    // Nor does an answer wait for what is to come, nor what workers have done. No
                    // time goes by in a recording but that of its frames.
                    if !read && input.is_waiting() {
                        self.pipeline.tick(Moment(0), &mut self.sink);
                        self.sink.flush();
                    }
                    return busy || read;
                }
            }
            let Some(frame) = input::earliest(&mut self.inputs) else {
                break;
            };
            // It fits: the batch is not full.
            let _ = frames.push(frame);
        }
        let busy = !frames.is_empty();
        Self::advance(
            &mut self.pipeline,
            &mut self.receiver,
            &mut self.sink,
            frames,
        );
        busy || read
    }

    /// Reads the next frames of a recording; whether there were any.
    fn read_ahead(
        input: &mut Input,
        burst: usize,
        receiver: &mut Receiver,
        sink: &mut DecisionSink,
    ) -> bool {
        let Input {
            source,
            place,
            pending,
            ..
        } = input;
        let (endpoints, cache) = (&mut sink.endpoints, &mut sink.cache);
        match source {
            Source::Queue(rx) => {
                // Every queue must be able to show its next frame: when buffers are few, none
                // reads further ahead.
                let pool = cache.pool();
                let scarce = !pool.has(pool.buffers() / 2);
                let ahead = if scarce { 1 } else { burst };
                let mut burst = Burst::<MAX_BURST>::new();
                let read = rx.rx_up_to(cache, &mut burst, ahead) > 0;
                burst.take_all(|mbuf| {
                    let at = mbuf.wire_time().unwrap_or_default().0;
                    let taken = receiver.receive(mbuf, Ns(at), *place, endpoints, cache);
                    if let Some(taken) = taken {
                        pending.push(frame_at(taken, Moment(at)));
                    }
                });
                read
            }
            Source::Lane(lane) => lane.take(|LaneFrame { frame, at }| {
                if let Some(taken) = receiver.route(frame, at, *place, endpoints, cache) {
                    pending.push(frame_at(taken, Moment(at.0)));
                }
            }),
        }
    }

    /// Ends the receive loops, if there are any, and takes what they have received: a live run decides
    /// it, a recording that is cut off and a run with enough events drop it.
    fn end_reception(&mut self, start: Tsc, end: End, frames: &mut Batch<Frame>) {
        let Some(loops) = &self.receive_loops else {
            return;
        };
        loops.stop.stop();
        let gives_way = loops.gives_way;
        let from = self.clock.now();
        let most = self.clock.to_cycles(LAST_FRAMES);
        loop {
            let now = self.clock.now();
            if !self.recorded && end == End::Stopped {
                self.poll(now, self.moment(start, now), frames);
            } else {
                for input in &mut self.inputs {
                    let (tally, cache) = (self.receiver.tally(), &mut self.sink.cache);
                    if let Source::Lane(lane) = &mut input.source {
                        lane.take(|LaneFrame { frame, .. }| {
                            tally.count_dropped(Cause::Aborted, frame.frames);
                            cache.free(frame.mbuf);
                        });
                    }
                }
            }
            if self.inputs.iter().all(Input::is_final) || now.since(from) > most {
                return;
            }
            if gives_way {
                std::thread::yield_now();
            }
        }
    }

    /// Takes frames through the pipeline, and their buffers back.
    #[inline]
    fn advance(
        pipeline: &mut Pipeline<Frame, Decision>,
        receiver: &mut Receiver,
        sink: &mut DecisionSink,
        frames: &mut Batch<Frame>,
    ) {
        if let Some(route) = receiver.take_route(&sink.endpoints) {
            sink.answer.set_peer(route.headers);
            sink.answer_by = route.port;
        }
        if frames.is_empty() {
            return;
        }
        pipeline.process(frames, sink);
        for frame in frames.drain() {
            sink.cache.free(frame.mbuf);
        }
    }

    #[cold]
    fn chores(&mut self, now: Moment) {
        // Losses that a device or the kernel counts: before the boards are judged by what is missing.
        for input in &mut self.inputs {
            if let Some(queue) = input.queue() {
                queue.sync_counters();
            }
        }
        let DecisionSink {
            endpoints, cache, ..
        } = &mut self.sink;
        for endpoint in &mut *endpoints {
            endpoint.retry(cache);
        }
        self.receiver.request_neighbour(endpoints, cache);
        // No time goes by in a recording but that of its frames.
        if !self.recorded {
            self.receiver.expire(Ns(now.0), cache);
        }
    }
}

#[cfg(test)]
mod back_pressure;
#[cfg(test)]
mod receive_loops;
#[cfg(test)]
mod standstill;
#[cfg(test)]
mod tests;
