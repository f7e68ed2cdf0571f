//! A peer that writes anything into the rings: for the property test and the fuzz target.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use pollux_mempool::region::{MemoryRegion, PageSize};

use super::endpoint_with;
use super::inbox::{CHUNK, Entry, INBOX, Inbox, MESSAGE, MORE, PUT, Progress, own};
use super::mapping::{Mapping, hand_over};
use super::message::{HELLO, Message, kind, receive, send};
use crate::address::{Psn, QpAddress, QpNumber};
use crate::{
    Access, Buffer, Event, Get, Key, Memory, Operation, PathOptions, Payload, Put, QpKind,
    QpOptions, QueuePair, Receive, RemoteBuffer, Status,
};

const PAGE: usize = 4096;
/// What takes longer hangs: a thread may wait for a CPU for seconds, and nothing here depends on its time.
const LONG: Duration = Duration::from_mins(10);
/// Number of the hostile queue pair, and key and address of its range.
const NUMBER: u32 = 77;
const RANGE: RemoteBuffer = RemoteBuffer {
    address: 1 << 40,
    key: Key(0x1234_5600),
};

/// Input, and zeros when it has ended.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first
    }

    fn half(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// A number near zero, near a limit, or any.
    fn word(&mut self) -> u32 {
        match self.byte() % 6 {
            0 => 0,
            1 => u32::from(self.byte()),
            2 => 1 << (self.byte() % 32),
            3 => u32::from(self.half()),
            4 => u32::MAX - u32::from(self.byte()),
            _ => u32::from(self.half()) << 16 | u32::from(self.half()),
        }
    }
}

/// Three pages of which the middle one is granted; the others have a pattern.
fn pages() -> (MemoryRegion, *const u8) {
    let region = MemoryRegion::builder(3 * PAGE).pages(PageSize::Kib4);
    let region = region.build().expect("three pages");
    let start = region.as_ptr().as_ptr();
    for n in (0..PAGE).chain(2 * PAGE..3 * PAGE) {
        // SAFETY: inside the region, which no other thread knows.
        unsafe { start.add(n).write_volatile(0xa5) };
    }
    (region, start)
}

/// Whether the pages around the middle one are as they were.
///
/// # Safety
/// The region is mapped.
unsafe fn are_whole(start: *const u8) -> bool {
    let mut outside = (0..PAGE).chain(2 * PAGE..3 * PAGE);
    // SAFETY: inside the region.
    outside.all(|n| unsafe { start.add(n).read_volatile() } == 0xa5)
}

/// Answers everything, and hands on what has a memory file.
fn answering(socket: UnixStream) -> Receiver<OwnedFd> {
    let (to, files) = channel();
    std::thread::spawn(move || {
        while let Ok((message, file)) = receive(&socket) {
            let id = message.id;
            let answer = Message {
                id,
                ..Message::new(kind::ANSWER)
            };
            let is_question = !matches!(message.kind, kind::ANSWER | kind::DESTROY);
            if is_question && send(&socket, &answer, None).is_err() {
                return;
            }
            // The inbox alone is wanted, and is so once.
            if message.kind == kind::CREATE {
                let _ = file.map(|file| to.send(file));
            }
        }
    });
    files
}

/// A queue pair and its peer's rings.
struct Victim {
    qp: QueuePair,
    buffer: Buffer,
    /// Its inbox as the peer has it, and the peer's own one.
    inbox: Inbox,
    peer: Inbox,
    /// Entries written into its inbox, messages, bytes of the last one that are left, and the peer's
    /// progress.
    written: u32,
    messages: u32,
    left: u32,
    progress: Progress,
    posted: u64,
    done: u64,
    has_failed: bool,
}

/// Runs a conversation of which every word that the peer writes comes from the input.
///
/// # Panics
/// A byte was written that was not granted, a request was done twice or never, or the ledger does not
/// balance.
pub fn rings(input: &[u8]) {
    let mut input = Input(input);
    let (socket, hostile) = UnixStream::pair().expect("a socket");
    let hello = Message {
        address: HELLO,
        ..Message::new(kind::HELLO)
    };
    send(&hostile, &hello, None).expect("a greeting");
    let (mut end, monitor) = endpoint_with(socket, 1, LONG).expect("an endpoint");
    receive(&hostile).expect("a greeting");
    let (region, around) = pages();
    let memory = Memory::new(region);
    let (theirs, around_theirs) = pages();
    let inbox_region = MemoryRegion::builder(INBOX).pages(PageSize::Kib4);
    let inbox_region = inbox_region.build().expect("an inbox");
    // SAFETY: the memory is accessed as below alone.
    let files = [&theirs, &inbox_region].map(|of| unsafe { hand_over(of, true) }.expect("a file"));
    let range = Message {
        number: RANGE.key.0,
        rights: u32::from(input.byte() % 4),
        address: RANGE.address,
        len: PAGE as u64,
        offset: PAGE as u64,
        ..Message::new(kind::REGISTER)
    };
    let create = Message {
        number: NUMBER,
        ..Message::new(kind::CREATE)
    };
    send(&hostile, &range, Some(files[0].as_fd())).expect("a range");
    send(&hostile, &create, Some(files[1].as_fd())).expect("a queue pair");
    let keep = hostile.try_clone().expect("a socket");
    let inboxes = answering(hostile);
    let peer = own(inbox_region).expect("an inbox");

    let kind = match input.byte() % 4 {
        0 => QpKind::Unreliable,
        _ => QpKind::Reliable,
    };
    let options = QpOptions {
        kind,
        ..QpOptions::default()
    };
    let buffer = end.register_buffer(&memory, PAGE..2 * PAGE, Access::ALL);
    let buffer = buffer.expect("a range");
    let qp = end.create_queue_pair(&options).expect("a queue pair");
    // The peer has answered, and hands it on or ends.
    let file = inboxes.recv();
    let mapping = Mapping::new(file.expect("an inbox").as_fd(), 0, INBOX as u64, true);
    let mapping = mapping.expect("an inbox");
    let start = mapping.start();
    // SAFETY: so many bytes are mapped there, at the start of a page, and are accessed by this alone.
    let inbox = unsafe { Inbox::new(start, std::sync::Arc::new(mapping)) };
    let address = QpAddress {
        number: QpNumber::new(NUMBER).expect("a number"),
        psn: Psn::default(),
        ..qp.address()
    };
    let connected = end.connect(&qp, &address, &PathOptions::default());
    connected.expect("a connection");
    peer.set_partner(qp.number().get());
    let mut victim = Victim {
        qp,
        buffer,
        inbox,
        peer,
        written: 0,
        messages: 0,
        left: 0,
        progress: Progress::default(),
        posted: 0,
        done: 0,
        has_failed: false,
    };
    for cookie in 0..8 {
        let to = victim.buffer.part(0, PAGE as u32);
        let _ = victim.qp.post_receive(Receive { cookie, to });
    }
    victim.qp.doorbell();
    while !input.0.is_empty() {
        victim.step(&mut input);
    }
    victim.qp.doorbell();
    // A failed one ends all requests; one that has not goes on until its peer is gone.
    drop(keep.shutdown(std::net::Shutdown::Both));
    let start = std::time::Instant::now();
    while !victim.has_failed || victim.done < victim.posted {
        victim.take();
        assert!(start.elapsed() < LONG, "it hangs");
    }
    drop(victim);
    drop(end);
    monitor.ledger().check().expect("a ledger that balances");
    // SAFETY: the regions are still there.
    assert!(unsafe { are_whole(around) && are_whole(around_theirs) });
    drop((memory, theirs));
}

impl Victim {
    fn step(&mut self, input: &mut Input<'_>) {
        // What breaks the protocol outright is rare: much comes after it then.
        match input.byte() % 64 {
            0 => self
                .inbox
                .forge(input.half().into(), input.word(), input.word()),
            1 => self
                .peer
                .forge(input.half().into(), input.word(), input.word()),
            // Where states, turns and progress are.
            2 => self.inbox.forge(0, input.word(), input.word()),
            3 => self
                .peer
                .forge(usize::from(input.byte() % 10), input.word(), input.word()),
            4..=23 => self.write(input),
            24..=29 => {
                let consumed = self
                    .progress
                    .consumed()
                    .wrapping_add((input.byte() % 3).into());
                self.progress.set_consumed(consumed);
                let posted = self.progress.posted().wrapping_add(input.byte().into());
                self.progress.set_posted(posted);
                self.peer.set_progress(self.progress);
            }
            30..=45 => self.post(input),
            _ => self.take(),
        }
    }

    /// Writes an entry, most of which could be a queue pair's.
    fn write(&mut self, input: &mut Input<'_>) {
        let odd = input.byte();
        let total = match input.byte() % 4 {
            0 => u32::from(input.byte()),
            1 => u32::from(input.half() % 6000),
            2 => 2048 + u32::from(input.byte()),
            _ if odd & 32 == 0 => 4096,
            _ => input.word(),
        };
        let continues = self.left > 0 && odd & 64 == 0;
        let of = if continues { self.left } else { total };
        let mut entry = Entry {
            kind: if continues { MORE } else { MESSAGE },
            flags: odd >> 7,
            len: of.min(CHUNK as u32) as u16,
            total,
            immediate: 1,
            progress: self.progress,
            number: self.messages,
        };
        self.left = of - u32::from(entry.len);
        self.messages = self.messages.wrapping_add(u32::from(!continues));
        match odd % 32 {
            0 => entry.kind = input.byte() % 5,
            1 => entry.flags = input.byte(),
            2 => entry.len = input.half(),
            3 => entry.progress.set_consumed(input.word()),
            4 => entry.progress.set_posted(input.word()),
            5 => entry.number = input.word(),
            6..=8 => {
                (entry.kind, entry.flags, entry.len) = (PUT, 1, 0);
                self.left = 0;
            }
            _ => {}
        }
        self.inbox.publish(self.written, &entry);
        self.written = self.written.wrapping_add(1);
    }

    /// Posts a request or a receive, most of them right.
    fn post(&mut self, input: &mut Input<'_>) {
        let (choice, cookie) = (input.byte(), self.posted);
        let local = crate::Local {
            key: self.buffer.key(),
            offset: (input.half() % 4200).into(),
            len: (input.half() % 4200).into(),
        };
        let payload = Payload::Indirect(local);
        let remote = RANGE.at((input.half() % 4200).into());
        let immediate = (choice & 8 != 0).then_some(input.word());
        let qp = &mut self.qp;
        let is_posted = match choice % 4 {
            0 => {
                let _ = qp.post_receive(Receive { cookie, to: local });
                false
            }
            1 => {
                let (payload, to) = (payload, remote);
                let put = Put {
                    cookie,
                    payload,
                    to,
                    immediate,
                };
                qp.put(put).is_ok()
            }
            2 => qp
                .get(Get {
                    cookie,
                    from: remote,
                    to: local,
                })
                .is_ok(),
            _ => qp
                .send(crate::Message {
                    cookie,
                    payload,
                    immediate,
                })
                .is_ok(),
        };
        self.posted += u64::from(is_posted);
        if choice & 16 == 0 {
            qp.doorbell();
        }
    }

    /// Takes events: requests are done once, in order.
    fn take(&mut self) {
        while let Some(event) = self.qp.poll_event() {
            match event {
                Event::Done(done) => {
                    assert_eq!(done.cookie, self.done);
                    assert!(!self.has_failed || done.status == Status::Flushed);
                    assert!(matches!(
                        done.operation,
                        Operation::Put | Operation::Get | Operation::Send
                    ));
                    self.done += 1;
                }
                Event::Received(received) => {
                    assert!(!self.has_failed || received.status == Status::Flushed);
                }
                Event::Failed(_) => {
                    assert!(!self.has_failed, "it fails twice");
                    self.has_failed = true;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::QpError;

    /// A peer that answers too late keeps no place for a queue pair that was not made.
    #[test]
    fn a_queue_pair_that_the_peer_does_not_take_is_withdrawn() {
        let (socket, silent) = UnixStream::pair().unwrap();
        let hello = Message {
            address: HELLO,
            ..Message::new(kind::HELLO)
        };
        send(&silent, &hello, None).unwrap();
        silent
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let (mut end, _) = endpoint_with(socket, 1, Duration::from_millis(20)).unwrap();
        let refused = end.create_queue_pair(&QpOptions::default());
        assert!(matches!(refused, Err(QpError::Peer(_))), "{refused:?}");
        let [hello, create, destroy] = [(); 3].map(|()| receive(&silent).unwrap().0);
        assert_eq!((hello.kind, create.kind), (kind::HELLO, kind::CREATE));
        assert_eq!(
            (destroy.kind, destroy.number),
            (kind::DESTROY, create.number)
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 400,
            // It would be beside a file that is not there.
            failure_persistence: None,
            ..ProptestConfig::default()
        })]
        /// No byte outside of what was granted, no request twice or never, no hang, and a ledger that
        /// balances.
        #[test]
        fn a_hostile_peer_breaks_nothing(input in proptest::collection::vec(any::<u8>(), 0..800)) {
            rings(&input);
        }
    }
}
