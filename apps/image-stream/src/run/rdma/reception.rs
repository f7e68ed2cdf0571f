//! Reception of stacks in the loop of the images.

use pollux_mempool::time::Ns;
use pollux_pipelines::Moment;
use pollux_pmd::{RxQueue, TallyView, TxQueue};
use pollux_rdma::roce::RoceLoop;
use zerocopy::IntoBytes as _;

use super::super::place::Place;
use super::super::received::ReceivedUntil;
use super::seat::Seat;

/// The endpoint, and the seats of all modules.
pub struct StackReception<L> {
    roce: RoceLoop,
    seats: Vec<Seat>,
    place: L,
    /// A packet of the detector: header and pixels. Words, for the alignment.
    scratch: Box<[u64]>,
    packet_bytes: usize,
    received: ReceivedUntil,
    /// Time of the last round.
    now: Moment,
}

/// Rounds at the end in which sources are told how many stacks were taken: more than one, since that may be lost.
const LAST_ROUNDS: usize = 4;

impl<L: Place> StackReception<L> {
    pub fn new(roce: RoceLoop, seats: Vec<Seat>, packet_bytes: usize, place: L) -> Self {
        Self {
            roce,
            seats,
            place,
            scratch: vec![0; packet_bytes.div_ceil(8)].into(),
            packet_bytes,
            received: ReceivedUntil::default(),
            now: Moment(0),
        }
    }

    /// Prepares the thread of the loop, before its first round.
    pub fn begin(&self) {
        self.place.prepare();
    }

    /// One round: serves the connections, and takes an image of each module. Whether there was anything.
    #[inline]
    pub fn poll(&mut self, now: Moment) -> bool {
        let mut is_busy = self.serve(now);
        let Some(scratch) = self.scratch.as_mut_bytes().get_mut(..self.packet_bytes) else {
            return is_busy;
        };
        let mut all = true;
        for seat in &mut self.seats {
            is_busy |= seat.take(&mut self.place, scratch, now);
            all &= !seat.has_stack();
        }
        if all {
            self.received.set(now);
        }
        is_busy
    }

    /// Serves the connections: lines are written, announcements are taken. For rounds in which there is no room
    /// for images.
    #[inline]
    pub fn serve(&mut self, now: Moment) -> bool {
        self.now = now;
        let now = Ns(now.0);
        let is_busy = self.roce.poll(now);
        for seat in &mut self.seats {
            seat.poll(now, !is_busy);
        }
        is_busy
    }

    /// Takes what was written and not announced, and nothing that comes later, since the run ends.
    pub fn close(&mut self) {
        for seat in &mut self.seats {
            seat.close();
        }
    }

    /// The time by which images are late: the begin of the last round that left no stack.
    pub fn received_until(&self) -> ReceivedUntil {
        self.received.clone()
    }

    /// Whether nothing more can be received.
    pub fn has_ended(&self) -> bool {
        self.roce.rx_state().is_final()
    }

    /// The counter of the lines that were placed.
    pub fn placed(&self) -> TallyView {
        self.place.view()
    }

    /// The queues, with which the port is stopped.
    pub fn finish(mut self) -> (Vec<RxQueue>, Vec<TxQueue>) {
        self.received.end();
        // Sources learn what was taken last.
        for _ in 0..LAST_ROUNDS {
            self.seats.iter_mut().for_each(Seat::tell_again);
            self.serve(self.now);
        }
        // Queue pairs are destroyed before their loop.
        drop(self.seats);
        let (rx, tx) = self.roce.into_queues();
        (vec![rx], tx.into_iter().collect())
    }
}
