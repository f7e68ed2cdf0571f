//! A module's stack buffers, and the source that writes them.

use pollux_images::formats::{HEADER_LEN, Header, Layout};
use pollux_images::stack::{StackLayout, is_written};
use pollux_mempool::time::Ns;
use pollux_pipelines::Moment;
use pollux_pmd::stream::StreamId;
use pollux_rdma::{Buffer, Event, Key, Local, Payload, Put, Receive, Received, Status};
use zerocopy::{FromZeros as _, IntoBytes as _};

use super::super::place::Place;
use super::counts::Counts;
use super::state::{LoopEnd, Peer};

/// How often the source is told how many stacks were taken, if nothing changes: that may be lost on the way.
const TELL: Ns = Ns(5_000_000);

/// Rounds in which what a source has sent is received after its end: with 32 frames each more than a queue holds.
const MAX_ROUNDS: u32 = 4096;

/// The header of a line that is not there.
const CLEARED: [u8; HEADER_LEN] = [0; HEADER_LEN];

/// Loop side of a module. Stack n of a source is in buffer n modulo their number.
pub struct Seat {
    layout: StackLayout,
    /// Lines of an interface.
    packets: usize,
    /// Stream of the first interface.
    first_stream: usize,
    buffers: Vec<Buffer>,
    shared: LoopEnd,
    peer: Option<Peer>,
    /// The source is gone, and stacks that it has left are taken.
    is_leaving: bool,
    /// Rounds since it was seen to be gone.
    rounds: u32,
    /// Stacks that were taken, and those that are over. The numbers wrap.
    taken: u32,
    announced: u32,
    /// Next image of the stack that is being taken.
    image: usize,
    /// What the source was told last, and when it is told again.
    told: u32,
    tell_at: Ns,
    counts: Counts,
}

impl Seat {
    pub fn new(
        detector: &Layout,
        layout: StackLayout,
        first_stream: usize,
        buffers: Vec<Buffer>,
        shared: LoopEnd,
        counts: Counts,
    ) -> Self {
        Self {
            layout,
            packets: detector.packets(),
            first_stream,
            buffers,
            shared,
            peer: None,
            is_leaving: false,
            rounds: 0,
            taken: 0,
            announced: 0,
            image: 0,
            told: 0,
            tell_at: Ns(0),
            counts,
        }
    }

    /// Takes what the source announces, and tells it what was taken. `is_dry` says that nothing was received in
    /// this round.
    #[inline]
    pub fn poll(&mut self, now: Ns, is_dry: bool) {
        if self.peer.is_none() {
            self.meet();
        }
        self.take_events();
        self.tell(now);
        if self.peer.is_some() && self.shared.has_left() {
            self.wait_for_the_rest(is_dry);
        }
    }

    /// The source is gone: what it has sent may wait in the receive queue, until a round finds nothing there or as
    /// much as a queue holds was received.
    #[cold]
    fn wait_for_the_rest(&mut self, is_dry: bool) {
        self.rounds += 1;
        // The first round may have begun before the source left.
        if self.rounds > 1 && is_dry || self.rounds > MAX_ROUNDS {
            self.rounds = 0;
            self.leave();
        }
    }

    /// Takes the next source.
    fn meet(&mut self) {
        self.peer = self.shared.arrival();
        if self.peer.is_some() {
            (self.told, self.tell_at) = (0, Ns(0));
            self.counts.seat.sources.add(1);
        }
    }

    fn take_events(&mut self) {
        while let Some(event) = self.peer.as_mut().and_then(|peer| peer.qp.poll_event()) {
            match event {
                Event::Received(received) => self.take_event(&received),
                Event::Done(_) => {}
                Event::Failed(_) => return self.leave(),
            }
        }
    }

    fn take_event(&mut self, received: &Received) {
        self.counts.seat.missed.add(received.missed.into());
        if received.status == Status::Flushed {
            return;
        }
        match received.immediate {
            Some(number) if received.is_put && received.status == Status::Ok => {
                self.announce(number);
            }
            _ => self.counts.seat.refused.add(1),
        }
        if let Some(peer) = &mut self.peer {
            // As many as were posted at first.
            let _ = peer.qp.post_receive(RECEIVE);
            peer.qp.doorbell();
        }
    }

    /// Stack `number` is over, and so are those before it: a connection keeps the order.
    fn announce(&mut self, number: u32) {
        let ahead = number.wrapping_sub(self.taken);
        let known = self.announced.wrapping_sub(self.taken);
        let seat = &self.counts.seat;
        if ahead < known || ahead > u32::MAX / 2 {
            seat.repeated.add(1);
        } else if ahead as usize >= self.buffers.len() {
            seat.refused.add(1);
        } else {
            seat.unannounced.add((ahead - known).into());
            self.announced = number.wrapping_add(1);
        }
    }

    /// Tells the source how many stacks were taken.
    fn tell(&mut self, now: Ns) {
        let Some(peer) = &mut self.peer else { return };
        if self.told == self.taken && now < self.tell_at {
            return;
        }
        let put = Put {
            cookie: 0,
            payload: Payload::Immediate(&self.taken.to_le_bytes()),
            to: peer.taken,
            immediate: None,
        };
        // While the queue is full it is told later.
        if peer.qp.put(put).is_ok() {
            peer.qp.doorbell();
            (self.told, self.tell_at) = (self.taken, now + TELL);
        }
    }

    /// The source is gone: what it has written is taken, announced or not.
    pub fn leave(&mut self) {
        self.take_events_of_the_end();
        self.peer = None;
        if self.is_leaving {
            return;
        }
        self.is_leaving = true;
        let known = self.announced.wrapping_sub(self.taken);
        let mut over = known;
        for n in known..self.buffers.len() as u32 {
            if self.has_lines(self.taken.wrapping_add(n)) {
                over = n + 1;
            }
        }
        self.counts.seat.unannounced.add((over - known).into());
        self.announced = self.taken.wrapping_add(over);
        self.free_if_empty();
    }

    fn take_events_of_the_end(&mut self) {
        let mut left = self.buffers.len() * 2;
        while left > 0
            && let Some(event) = self.peer.as_mut().and_then(|peer| peer.qp.poll_event())
        {
            left -= 1;
            if let Event::Received(received) = event {
                self.take_event(&received);
            }
        }
    }

    /// Whether there is a line in the buffer of a stack.
    fn has_lines(&self, stack: u32) -> bool {
        let images = 0..self.layout.images();
        let mut lines =
            images.flat_map(|image| (0..self.layout.lines()).map(move |line| (image, line)));
        lines.any(|(image, line)| is_written(&self.header(stack, image, line)))
    }

    fn buffer(&self, stack: u32) -> &Buffer {
        &self.buffers[stack as usize % self.buffers.len()]
    }

    fn header(&self, stack: u32, image: usize, line: usize) -> Header {
        let mut header = Header::new_zeroed();
        let at = self.layout.offset(image, line) + self.layout.pixel_bytes();
        // The buffer has all lines of the layout.
        let _ = self.buffer(stack).read(at, header.as_mut_bytes());
        header
    }

    /// Whether there is a stack to take.
    #[inline]
    pub fn has_stack(&self) -> bool {
        self.taken != self.announced
    }

    /// Takes the lines of one image, each by a copy: the source could write meanwhile, if it did what it must
    /// not. `scratch` has room for a packet. Whether there was an image.
    pub fn take<L: Place>(&mut self, place: &mut L, scratch: &mut [u8], at: Moment) -> bool {
        if !self.has_stack() {
            return false;
        }
        for line in 0..self.layout.lines() {
            self.take_line(line, place, scratch, at);
        }
        self.image += 1;
        if self.image == self.layout.images() {
            self.image = 0;
            self.taken = self.taken.wrapping_add(1);
            self.counts.seat.stacks.add(1);
            self.free_if_empty();
        }
        true
    }

    #[inline]
    fn take_line<L: Place>(&mut self, line: usize, place: &mut L, scratch: &mut [u8], at: Moment) {
        self.counts.line(self.layout.line_bytes());
        let header = self.header(self.taken, self.image, line);
        if !is_written(&header) {
            self.counts.lost_line();
            return;
        }
        let offset = self.layout.offset(self.image, line);
        let (front, pixels) = scratch.split_at_mut(HEADER_LEN);
        front.copy_from_slice(header.as_bytes());
        let buffer = self.buffer(self.taken);
        // The buffer has all lines of the layout.
        let _ = buffer.read(offset, pixels);
        let _ = buffer.write(offset + self.layout.pixel_bytes(), &CLEARED);
        let stream = StreamId((self.first_stream + line / self.packets) as u16);
        place.place_payload(stream, scratch, at);
    }

    /// Frees the seat of a source that is gone and has left nothing more.
    fn free_if_empty(&mut self) {
        if self.is_leaving && !self.has_stack() {
            (self.is_leaving, self.taken, self.announced) = (false, 0, 0);
            self.shared.free();
        }
    }
}

/// A receive for an announcement, which has no data.
pub const RECEIVE: Receive = Receive {
    cookie: 0,
    to: Local {
        key: Key(0),
        offset: 0,
        len: 0,
    },
};
