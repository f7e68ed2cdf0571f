//! Hand-over of a module's source between the thread of the sources and the loop.
//!
//! The thread gives the loop a source that has connected, and says when it has left. The loop takes what that
//! source has written, and gives it back. Only then the thread destroys its queue pair, withdraws its keys and
//! accepts the next source. So the loop waits for no lock and frees nothing, and no two sources write into the
//! same buffers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use pollux_rdma::{QueuePair, RemoteBuffer};

/// A source that is connected.
pub struct Peer {
    pub qp: QueuePair,
    /// Where it reads how many stacks were taken.
    pub taken: RemoteBuffer,
}

/// The loop's end, of a source of type `T`.
pub struct LoopEnd<T> {
    has_left: Arc<AtomicBool>,
    arrivals: Receiver<T>,
    departures: SyncSender<T>,
}

/// The thread's end.
pub struct SourcesEnd<T> {
    has_left: Arc<AtomicBool>,
    arrivals: SyncSender<T>,
    departures: Receiver<T>,
}

/// Both ends, without a source.
pub fn shared<T>() -> (LoopEnd<T>, SourcesEnd<T>) {
    let has_left = Arc::<AtomicBool>::default();
    // One source at a time: neither side ever finds a queue full.
    let (sender, arrivals) = sync_channel(1);
    let (departures, receiver) = sync_channel(1);
    let other = SourcesEnd {
        has_left: Arc::clone(&has_left),
        arrivals: sender,
        departures: receiver,
    };
    let own = LoopEnd {
        has_left,
        arrivals,
        departures,
    };
    (own, other)
}

impl<T> LoopEnd<T> {
    /// The source that has connected.
    #[inline]
    pub fn arrival(&self) -> Option<T> {
        self.arrivals.try_recv().ok()
    }

    /// Whether the source that has connected is gone.
    #[inline]
    pub fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Acquire)
    }

    /// Gives the source back: all that it has written was taken.
    pub fn give_back(&self, peer: T) {
        // The thread takes it, unless the run has ended.
        let _ = self.departures.try_send(peer);
    }
}

impl<T> SourcesEnd<T> {
    /// Gives the loop a source. The one before it was [given back](Self::returned).
    pub fn give(&self, peer: T) {
        // The queue publishes it, and the loop looks at it after it has the source.
        self.has_left.store(false, Ordering::Relaxed);
        let _ = self.arrivals.try_send(peer);
    }

    /// The source is gone.
    pub fn leave(&self) {
        self.has_left.store(true, Ordering::Release);
    }

    /// The source that the loop gives back.
    pub fn returned(&self) -> Option<T> {
        self.departures.try_recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Each source comes once and goes once, in order; none is seen as gone before it is; and what the loop does for it
    /// is visible to the thread when it is back.
    #[test]
    fn each_source_is_handed_over_and_back_once() {
        const SOURCES: u64 = 20_000;
        let (own, other) = shared::<(u64, u64)>();
        let owner = thread::spawn(move || {
            let mut seen = 0;
            while seen < SOURCES {
                let Some((number, _)) = own.arrival() else {
                    thread::yield_now();
                    continue;
                };
                assert_eq!(number, seen);
                assert!(own.arrival().is_none());
                // Of odd ones the queue pair fails: they go back before they have left.
                while number % 2 == 0 && !own.has_left() {
                    thread::yield_now();
                }
                own.give_back((number, number * number));
                seen += 1;
            }
        });
        for number in 0..SOURCES {
            other.give((number, 0));
            if number % 4 == 1 {
                thread::yield_now();
            }
            if number % 2 == 0 {
                assert!(other.returned().is_none(), "given back before it has left");
            }
            other.leave();
            let back = loop {
                if let Some(back) = other.returned() {
                    break back;
                }
                thread::yield_now();
            };
            assert_eq!(back, (number, number * number));
        }
        owner.join().unwrap();
        assert!(other.returned().is_none());
    }
}
