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

/// Payload of a fragment, in the buffer in which it arrived.
pub(crate) struct Payload {
    room: Option<Box<[u8]>>,
    range: std::ops::Range<usize>,
    rooms: Rooms,
}

impl Payload {
    pub(crate) fn new(room: Box<[u8]>, range: std::ops::Range<usize>, rooms: &Rooms) -> Self {
        Self {
            room: Some(room),
            range,
            rooms: rooms.clone(),
        }
    }
}

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let room = self.room.as_deref().unwrap_or_default();
        room.get(self.range.clone()).unwrap_or_default()
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        if let Some(room) = self.room.take() {
            self.rooms.give(room);
        }
    }
}
