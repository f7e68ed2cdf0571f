//! Sessions with a hostile peer, whose end of the socket the caller plays: for tests and fuzzing.
//! All runs on one thread, so that an input has the same effect each time.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use pollux_mempool::{Burst, Mempool, PoolCache};

use super::back::Back;
use super::connection::{Connection, Stop};
use super::control::Control;
use super::front::Front;
use super::link::State;
use super::queues::{Rx, RxRing, Tx, TxRing};
use super::slots;
use crate::driver::{Origin, RxDriver, TxDriver};
use crate::drivers::virtio::Features;
use crate::grant::MemoryGrant;
use crate::ledger::{Sent, Tally};

/// The grant of the sessions.
fn grant() -> MemoryGrant {
    // SAFETY: the peer is the caller, in this thread: it writes nothing while a queue is polled.
    unsafe { MemoryGrant::new() }
}

/// One queue each way, and their counters.
pub struct Queues {
    rx: Box<dyn RxDriver>,
    tx: Box<dyn TxDriver>,
    cache: PoolCache,
    origin: Origin,
    tally: Tally,
    sent: Sent,
    /// Frames received.
    pub received: u64,
    /// Frames accepted for transmission.
    pub taken: u64,
}

impl Queues {
    /// Receives the available frames, and sends `frames` frames of 100 bytes.
    pub fn poll(&mut self, frames: usize) {
        let mut burst = Burst::<32>::new();
        let Self {
            rx,
            tx,
            cache,
            origin,
            tally,
            sent,
            ..
        } = self;
        self.received += rx.rx(cache, &mut burst.as_mut(), origin, tally) as u64;
        cache.free_burst(&mut burst);
        cache.alloc_burst(&mut burst, frames);
        for mbuf in &mut *burst {
            if let Some(bytes) = mbuf.append(100) {
                bytes.fill(0xa5);
            }
        }
        self.taken += tx.tx(cache, &mut burst.as_mut(), sent) as u64;
        cache.free_burst(&mut burst);
    }

    fn finish(&mut self) {
        self.tx.finish(&mut self.sent);
        self.rx.finish(&mut self.tally);
        let (balance, sent) = (self.tally.view().balance(), self.sent.view());
        assert_eq!(balance.from_wire, self.received + balance.dropped_total());
        assert_eq!(self.taken, sent.packets() + sent.errors());
    }
}

fn queues<R, T>(pool: &Mempool, rx: Rx<R>, tx: Tx<T>) -> Option<Queues>
where
    R: RxRing + 'static,
    T: TxRing + 'static,
{
    Some(Queues {
        rx: Box::new(rx),
        tx: Box::new(tx),
        cache: pool.cache(16).ok()?,
        origin: Origin::new(0, 0),
        tally: Tally::new(),
        sent: Sent::new(),
        received: 0,
        taken: 0,
    })
}

fn everything() -> Features {
    Features::VERSION_1
        | Features::PACKED
        | Features::IN_ORDER
        | Features::MERGEABLE
        | Features::INDIRECT
        | Features::MTU
}

/// Runs a back end with the front end at the other end of the socket `peer`; calls `between` after
/// each message. All frames are accounted for at the end. Returns why the session ended; `None` if
/// it could not start.
pub fn back_end(
    pool: &Mempool,
    peer: UnixStream,
    mut between: impl FnMut(&mut Queues),
) -> Option<String> {
    let (rx, tx) = (slots(1), slots(1));
    let control = Arc::new(Control::none().ok()?);
    let back = Back {
        port: "hostile".into(),
        offered: everything(),
        mtu: 1500,
        sealed: false,
        rx: rx.clone(),
        tx: tx.clone(),
    };
    let (rx, tx) = (rx.into_iter().next()?, tx.into_iter().next()?);
    let rx = Rx {
        slot: rx,
        control: control.clone(),
    };
    let mut queues = queues(pool, rx, Tx { slot: tx, control })?;
    let connection = connection(peer).ok()?;
    let ended = back.session_with(&connection, &State::default(), || between(&mut queues));
    queues.finish();
    Some(ended.to_string())
}

/// Runs a front end with the back end at the other end of the socket `peer`; calls `started` if and
/// when the rings start. Otherwise as [`back_end`].
///
/// # Panics
/// A buffer is neither in its pool nor in quarantine at the end. The pool must be full at the call,
/// and is full again when this returns. The caller is the back end, and writes nothing after that.
pub fn front_end(
    pool: &Mempool,
    peer: UnixStream,
    started: impl FnOnce(&mut Queues),
) -> Option<String> {
    let (rx, tx) = (slots(1), slots(1));
    let control = Arc::new(Control::none().ok()?);
    let front = Front {
        grant: grant(),
        wanted: everything(),
        mtu: 1500,
        size: 16,
        pool: pool.clone(),
        rx: rx.clone(),
        tx: tx.clone(),
    };
    let (rx, tx) = (rx.into_iter().next()?, tx.into_iter().next()?);
    let rx = Rx {
        slot: rx,
        control: control.clone(),
    };
    let mut queues = queues(pool, rx, Tx { slot: tx, control })?;
    let connection = connection(peer).ok()?;
    let state = State::default();
    let ended = front.session_with(connection, &state, || started(&mut queues));
    queues.finish();
    drop(queues);
    assert_eq!(pool.available() + state.lent.buffers(), pool.buffers());
    state.lent.release();
    Some(ended.to_string())
}

fn connection(peer: UnixStream) -> io::Result<Connection> {
    Connection::new(peer, Stop::new()?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;
    use std::net::Shutdown;

    use pollux_mempool::PoolConfig;
    use proptest::prelude::*;

    use super::*;

    /// A request with some payload, mostly of the size of some request.
    fn message() -> impl Strategy<Value = Vec<u8>> {
        let word = prop_oneof![0..4_u32, any::<u32>(), Just(256), Just(1 << 30)];
        let payload = prop::collection::vec(word, 0..12);
        let flags = prop_oneof![Just(1_u32), Just(5), Just(9), any::<u32>()];
        (0..45_u32, flags, payload).prop_map(|(number, flags, payload)| {
            let len = 4 * payload.len() as u32;
            let words = [number, flags, len].into_iter().chain(payload);
            words.flat_map(u32::to_ne_bytes).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        /// The session ends, and all buffers are returned, whatever the messages contain.
        #[test]
        fn any_messages_are_survived(
            messages in prop::collection::vec(message(), 0..20),
            rest in prop::collection::vec(any::<u8>(), 0..12),
        ) {
            let config = PoolConfig { buffers: 64, ..PoolConfig::default() };
            let pool = Mempool::new(config).unwrap();
            let open = || {
                let (mut peer, socket) = UnixStream::pair().unwrap();
                peer.write_all(&messages.concat()).unwrap();
                peer.write_all(&rest).unwrap();
                peer.shutdown(Shutdown::Write).unwrap();
                (peer, socket)
            };
            let (_peer, socket) = open();
            prop_assert!(back_end(&pool, socket, |queues| queues.poll(1)).is_some());
            let (_peer, socket) = open();
            prop_assert!(front_end(&pool, socket, |queues| queues.poll(1)).is_some());
            prop_assert_eq!(pool.available(), pool.buffers());
        }
    }
}
