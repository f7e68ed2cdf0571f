//! A module's connection to its receiver.

use pollux_images::stack::StackLayout;
use pollux_mempool::time::Ns;
use pollux_rdma::{Buffer, Event, Local, Payload, Put, QueuePair, RemoteBuffer, Status};

use super::super::api::StackCounts;

/// How long the receiver may take to answer before the last announcement is repeated: that may be lost. Three
/// repetitions come within the least time for which images of several modules wait (`image-stream`, 20 ms).
const REPEAT: Ns = Ns(5_000_000);

/// What the counter of stacks has until the receiver writes it: that it is ready, and has taken none.
const NOT_READY: u32 = u32::MAX;

/// Prepares the counter of stacks that the receiver has taken.
pub(super) fn prepare(taken: &Buffer) {
    // It has as many bytes.
    let _ = taken.write(0, &NOT_READY.to_le_bytes());
}

/// Where a line goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Into this image of the stack that is being written.
    Image(usize),
    /// Nowhere: its stack is lost, or announced already.
    Lost,
    /// It has to wait until a buffer is free.
    Wait,
}

/// A stack that is being written.
struct Open {
    /// Lines that were not written yet, by image and line.
    missing: Vec<bool>,
    left: usize,
}

/// The connection, and the stacks that go over it. Stacks go into the buffers in turn, each if the receiver has
/// taken all but the last of so many stacks; numbers are those of stacks that are written.
pub(super) struct Lane {
    qp: QueuePair,
    /// How many stacks the receiver has taken, which it writes here.
    taken: Buffer,
    layout: StackLayout,
    buffers: Vec<RemoteBuffer>,
    waits: bool,
    /// Stacks that were announced: the number of the next one, and its buffer.
    announced: u32,
    slot: usize,
    /// Request of the last announcement.
    announcement: u64,
    /// Place of the stack among all of the run: written, lost, or announced.
    current: Option<u64>,
    stack: Open,
    is_open: bool,
    /// Requests that were posted, and those that are done.
    posted: u64,
    done: u64,
    /// Requests that a doorbell has started.
    started: u64,
    /// Stacks that were announced and taken when the receiver last said something new, or was to hear something
    /// new; and when that was.
    known: (u32, u32),
    since: Ns,
    has_failed: bool,
    counts: StackCounts,
}

impl Lane {
    pub(super) fn new(
        qp: QueuePair,
        taken: Buffer,
        layout: StackLayout,
        buffers: Vec<RemoteBuffer>,
        waits: bool,
    ) -> Self {
        let lines = layout.images() * layout.lines();
        Self {
            qp,
            taken,
            layout,
            buffers,
            waits,
            announced: 0,
            slot: 0,
            announcement: 0,
            current: None,
            stack: Open {
                missing: vec![false; lines],
                left: 0,
            },
            is_open: false,
            posted: 0,
            done: 0,
            started: 0,
            known: (0, 0),
            since: Ns(0),
            has_failed: false,
            counts: StackCounts::default(),
        }
    }

    /// Whether two requests can be posted: a line, and the announcement of the stack before it.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.has_failed || self.posted - self.done + 2 <= QueuePair::REQUESTS as u64
    }

    /// Requests that are done.
    #[inline]
    pub(super) fn done(&self) -> u64 {
        self.done
    }

    /// How many stacks the receiver says it has taken.
    fn taken(&self) -> u32 {
        let mut taken = [0; size_of::<u32>()];
        // The buffer has as many bytes.
        let _ = self.taken.read(0, &mut taken);
        u32::from_le_bytes(taken)
    }

    /// Whether the receiver takes what is written.
    pub(super) fn is_ready(&self) -> bool {
        self.taken() != NOT_READY
    }

    /// Stacks that the receiver has, and has not taken. A number that cannot be is as if none were taken.
    fn outstanding(&self) -> u32 {
        let outstanding = self.announced.wrapping_sub(self.taken());
        outstanding.min(self.buffers.len() as u32)
    }

    /// Where the lines of a frame go, counted from the first one of the run.
    #[inline]
    pub(super) fn place(&mut self, frame: u64) -> Place {
        let images = self.layout.images() as u64;
        let (stack, image) = (frame / images, (frame % images) as usize);
        if self.current != Some(stack) {
            if self.current.is_some_and(|current| stack < current) {
                return Place::Lost;
            }
            self.end_stack();
            let is_full = self.outstanding() as usize >= self.buffers.len();
            if is_full && self.waits && !self.has_failed {
                return Place::Wait;
            }
            self.current = Some(stack);
            if is_full || self.has_failed {
                self.counts.overrun += 1;
            } else {
                self.is_open = true;
                self.stack.missing.fill(true);
                self.stack.left = self.stack.missing.len();
            }
        }
        if self.is_open && !self.has_failed {
            Place::Image(image)
        } else {
            Place::Lost
        }
    }

    /// Where a place of the stack that is being written is at the receiver.
    fn remote(&self, offset: usize) -> RemoteBuffer {
        self.buffers[self.slot].at(offset as u64)
    }

    /// Number of the request that is posted next; the first one has 1.
    #[inline]
    pub(super) fn next_request(&self) -> u64 {
        self.posted + 1
    }

    /// Writes a line of the stack; the last one announces it. Whether the request was taken.
    #[inline]
    pub(super) fn put(&mut self, image: usize, line: usize, from: Local) -> bool {
        let to = self.remote(self.layout.offset(image, line));
        let at = image * self.layout.lines() + line;
        if let Some(missing) = self.stack.missing.get_mut(at) {
            self.stack.left -= usize::from(std::mem::take(missing));
        }
        let is_last = self.stack.left == 0;
        let immediate = is_last.then_some(self.announced);
        let posted = self.post(Payload::Indirect(from), to, immediate);
        if is_last {
            self.is_announced();
        }
        posted
    }

    /// Announces the stack that was begun, if lines of it were never sent.
    fn end_stack(&mut self) {
        if self.is_open {
            // Without room it is repeated.
            self.announce(self.announced);
            self.is_announced();
        }
    }

    fn is_announced(&mut self) {
        self.is_open = false;
        self.announced = self.announced.wrapping_add(1);
        self.slot = (self.slot + 1) % self.buffers.len();
        self.announcement = self.posted;
        self.counts.announced += 1;
    }

    /// A PUT of nothing, with the number of a stack. Whether the request was taken.
    fn announce(&mut self, stack: u32) -> bool {
        let to = self.remote(0);
        self.post(Payload::Immediate(&[]), to, Some(stack))
    }

    fn post(&mut self, payload: Payload<'_>, to: RemoteBuffer, immediate: Option<u32>) -> bool {
        let put = Put {
            cookie: self.posted,
            payload,
            to,
            immediate,
        };
        let is_posted = self.qp.put(put).is_ok();
        self.posted += u64::from(is_posted);
        is_posted
    }

    /// Starts what was posted.
    #[inline]
    pub(super) fn doorbell(&mut self) {
        if self.started != self.posted {
            self.started = self.posted;
            self.qp.doorbell();
        }
    }

    /// Takes events, and repeats an announcement without an answer, also among the lines of the next stack.
    #[inline]
    pub(super) fn poll(&mut self, now: Ns) {
        while let Some(event) = self.qp.poll_event() {
            match event {
                Event::Done(done) => {
                    self.done += 1;
                    self.has_failed |= done.status != Status::Ok;
                }
                Event::Failed(_) => self.has_failed = true,
                // Its peer has nothing to say.
                Event::Received(_) => {}
            }
        }
        let known = (self.announced, self.taken());
        let is_answered = self.outstanding() == 0 || !self.is_ready();
        if is_answered || known != self.known || self.done < self.announcement {
            (self.known, self.since) = (known, now);
        } else if now - self.since > REPEAT && !self.has_failed && self.has_room() {
            self.since = now;
            if self.announce(self.announced.wrapping_sub(1)) {
                self.counts.repeated += 1;
                self.doorbell();
            }
        }
    }

    /// Ends the stack that was begun; stacks that the receiver has not taken.
    pub(super) fn finish(&mut self) -> usize {
        if self.is_open && self.has_room() {
            self.end_stack();
            self.doorbell();
        }
        if self.has_failed {
            return 0;
        }
        self.outstanding() as usize + usize::from(self.is_open)
    }

    /// What became of the stacks.
    pub(super) fn counts(&self) -> StackCounts {
        let outstanding = u64::from(self.outstanding());
        StackCounts {
            taken: self.counts.announced.saturating_sub(outstanding),
            ..self.counts
        }
    }
}

#[cfg(test)]
mod tests;
