//! A module's stack buffers, and the source that writes them.

use pollux_images::formats::{HEADER_LEN, Layout};
use pollux_images::stack::is_written;
use pollux_mempool::time::Ns;
use pollux_pipelines::Moment;
use pollux_pmd::stream::StreamId;
use pollux_rdma::{Event, Key, Local, Payload, Put, Receive, Received, Status};
use zerocopy::IntoBytes as _;

use super::super::place::Place;
use super::counts::Counts;
use super::stacks::Stacks;
use super::state::{LoopEnd, Peer};

/// How often the source is told how many stacks were taken, if nothing changes: that may be lost on the way.
const TELL: Ns = Ns(5_000_000);

/// Rounds in which what a source has sent is received after its end: with 32 frames each more than a queue holds.
const MAX_ROUNDS: u32 = 4096;

/// What is received from a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// All that it announces.
    Open,
    /// Nothing more: it is gone, and what it has left is taken.
    Leaving,
    /// Nothing more: the run ends, and the source is told what was taken.
    Closing,
}

/// Loop side of a module. Stacks of a source are in the buffers in turn.
pub struct Seat {
    /// Lines of an interface.
    packets: usize,
    /// Stream of the first interface.
    first_stream: usize,
    stacks: Stacks,
    shared: LoopEnd<Peer>,
    peer: Option<Peer>,
    phase: Phase,
    /// Rounds since the source was seen to be gone.
    rounds: u32,
    /// Stacks that were taken, and those that are over. The numbers wrap.
    taken: u32,
    over: u32,
    /// Stacks that the source has announced; at its end there may be more that are over.
    announced: u32,
    /// Buffer of the next stack to take.
    slot: usize,
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
        first_stream: usize,
        stacks: Stacks,
        shared: LoopEnd<Peer>,
        counts: Counts,
    ) -> Self {
        Self {
            packets: detector.packets(),
            first_stream,
            stacks,
            shared,
            peer: None,
            phase: Phase::Open,
            rounds: 0,
            taken: 0,
            over: 0,
            announced: 0,
            slot: 0,
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
        if self.phase == Phase::Open && self.peer.is_some() && self.shared.has_left() {
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

    /// Takes the next source, unless the run ends.
    fn meet(&mut self) {
        if self.phase == Phase::Open {
            self.peer = self.shared.arrival();
        }
        if self.peer.is_some() {
            (self.taken, self.over, self.announced, self.slot) = (0, 0, 0, 0);
            (self.told, self.tell_at) = (0, Ns(0));
            self.counts.seat.sources.add(1);
        }
    }

    fn take_events(&mut self) {
        while let Some(event) = self.peer.as_mut().and_then(|peer| peer.qp.poll_event()) {
            match event {
                Event::Received(received) => self.take_event(&received),
                Event::Failed(_) if self.phase == Phase::Open => return self.leave(),
                Event::Done(_) | Event::Failed(_) => {}
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
        if self.phase != Phase::Open {
            return self.announce_late(number);
        }
        let ahead = number.wrapping_sub(self.taken);
        let known = self.over.wrapping_sub(self.taken);
        let seat = &self.counts.seat;
        if ahead < known || ahead > u32::MAX / 2 {
            seat.repeated.add(1);
        } else if ahead as usize >= self.stacks.count() {
            seat.refused.add(1);
        } else {
            seat.unannounced.add((ahead - known).into());
            self.announced = number.wrapping_add(1);
            self.over = self.announced;
        }
    }

    /// A stack that is taken, as it was at the end: its source may be told so now.
    fn announce_late(&mut self, number: u32) {
        let unannounced = self.over.wrapping_sub(self.announced);
        if number.wrapping_sub(self.announced) < unannounced {
            self.announced = number.wrapping_add(1);
        }
    }

    /// Tells the source how many stacks were taken, of those that it has announced.
    fn tell(&mut self, now: Ns) {
        let Some(peer) = &mut self.peer else { return };
        let left = self.announced.wrapping_sub(self.taken);
        let is_ahead = left > u32::MAX / 2;
        let taken = if is_ahead { self.announced } else { self.taken };
        if self.told == taken && now < self.tell_at {
            return;
        }
        let put = Put {
            cookie: 0,
            payload: Payload::Immediate(&taken.to_le_bytes()),
            to: peer.taken,
            immediate: None,
        };
        // While the queue is full it is told later.
        if peer.qp.put(put).is_ok() {
            peer.qp.doorbell();
            (self.told, self.tell_at) = (taken, now + TELL);
        }
    }

    /// Has the source told once more, whatever the time: the run has ended.
    pub fn tell_again(&mut self) {
        self.tell_at = Ns(0);
    }

    /// The source is gone: what it has written is taken, announced or not.
    fn leave(&mut self) {
        self.take_all(Phase::Leaving);
        self.give_back_if_empty();
    }

    /// The run ends: what the source has written so far is taken, announced or not. No other one is accepted.
    pub fn close(&mut self) {
        match (self.phase, &self.peer) {
            (Phase::Open, Some(_)) => self.take_all(Phase::Closing),
            (Phase::Open, None) => self.phase = Phase::Closing,
            (Phase::Leaving | Phase::Closing, _) => {}
        }
    }

    fn take_all(&mut self, phase: Phase) {
        self.take_events_of_the_end();
        self.phase = phase;
        let known = self.over.wrapping_sub(self.taken);
        let mut over = known;
        for n in known..self.stacks.count() as u32 {
            if self.stacks.has_lines(self.slot_of(n)) {
                over = n + 1;
            }
        }
        self.counts.seat.unannounced.add((over - known).into());
        self.over = self.taken.wrapping_add(over);
    }

    fn take_events_of_the_end(&mut self) {
        let mut left = self.stacks.count() * 2;
        while left > 0
            && let Some(event) = self.peer.as_mut().and_then(|peer| peer.qp.poll_event())
        {
            left -= 1;
            if let Event::Received(received) = event {
                self.take_event(&received);
            }
        }
    }

    /// Buffer of a stack, counted from the next one to take.
    fn slot_of(&self, ahead: u32) -> usize {
        (self.slot + ahead as usize) % self.stacks.count()
    }

    /// Whether there is a stack to take.
    #[inline]
    pub fn has_stack(&self) -> bool {
        self.taken != self.over
    }

    /// Takes the lines of one image, each by a copy: the source could write meanwhile, if it did what it must
    /// not. `scratch` has room for a packet. Whether there was an image.
    pub fn take<L: Place>(&mut self, place: &mut L, scratch: &mut [u8], at: Moment) -> bool {
        if !self.has_stack() {
            return false;
        }
        for line in 0..self.stacks.layout().lines() {
            self.take_line(line, place, scratch, at);
        }
        self.image += 1;
        if self.image == self.stacks.layout().images() {
            self.image = 0;
            self.taken = self.taken.wrapping_add(1);
            self.slot = self.slot_of(1);
            self.counts.seat.stacks.add(1);
            if self.phase == Phase::Leaving {
                self.give_back_if_empty();
            }
        }
        true
    }

    #[inline]
    fn take_line<L: Place>(&mut self, line: usize, place: &mut L, scratch: &mut [u8], at: Moment) {
        self.counts.line(self.stacks.layout().line_bytes());
        let header = self.stacks.header(self.slot, self.image, line);
        if !is_written(&header) {
            self.counts.lost_line();
            return;
        }
        let (front, pixels) = scratch.split_at_mut(HEADER_LEN);
        front.copy_from_slice(header.as_bytes());
        self.stacks.pixels(self.slot, self.image, line, pixels);
        self.stacks.clear(self.slot, self.image, line);
        let stream = StreamId((self.first_stream + line / self.packets) as u16);
        place.place_payload(stream, scratch, at);
    }

    /// Gives a source back that is gone and has left nothing more.
    fn give_back_if_empty(&mut self) {
        if !self.has_stack() {
            self.phase = Phase::Open;
            if let Some(peer) = self.peer.take() {
                self.shared.give_back(peer);
            }
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
