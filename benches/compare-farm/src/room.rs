//! Buffers of datagrams: taken from a list of free ones, and returned when the last user is done.

use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;

/// Free buffers of a loop.
#[derive(Clone)]
pub(crate) struct Rooms(Rc<RefCell<Vec<Box<[u8]>>>>);

impl Rooms {
    /// `count` buffers of `len` bytes.
    pub(crate) fn new(count: usize, len: usize) -> Self {
        let rooms = (0..count).map(|_| vec![0; len].into_boxed_slice());
        Self(Rc::new(RefCell::new(rooms.collect())))
    }

    pub(crate) fn take(&self) -> Option<Box<[u8]>> {
        self.0.borrow_mut().pop()
    }

    pub(crate) fn give(&self, room: Box<[u8]>) {
        self.0.borrow_mut().push(room);
    }
}

/// A datagram that has arrived, which returns its buffer when the last user is done.
struct Shared {
    room: Box<[u8]>,
    rooms: Rooms,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.rooms.give(std::mem::take(&mut self.room));
    }
}

/// A part of a datagram, in the buffer in which it arrived.
pub(crate) struct Payload {
    shared: Rc<Shared>,
    range: std::ops::Range<usize>,
}

impl Payload {
    pub(crate) fn new(room: Box<[u8]>, range: std::ops::Range<usize>, rooms: &Rooms) -> Self {
        let rooms = rooms.clone();
        Self {
            shared: Rc::new(Shared { room, rooms }),
            range,
        }
    }

    /// A part of this part, if it has so many bytes.
    pub(crate) fn part(&self, range: std::ops::Range<usize>) -> Option<Self> {
        let at = self.range.start;
        (range.end <= self.range.len()).then(|| Self {
            shared: Rc::clone(&self.shared),
            range: at + range.start..at + range.end,
        })
    }

    /// What is behind the first so many bytes of it.
    pub(crate) fn behind(self, bytes: usize) -> Option<Self> {
        let rest = self.range.start + bytes..self.range.end;
        (!rest.is_empty()).then(|| Self {
            shared: self.shared,
            range: rest,
        })
    }
}

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let room = self.shared.room.get(self.range.clone());
        room.unwrap_or_default()
    }
}
