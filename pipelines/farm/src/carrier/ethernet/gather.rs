//! Frames that messages are gathered in.

use pollux_pmd::mempool::Mbuf;

use super::Ethernet;
use crate::carrier::frame::{ETHERNET, mac_of, write_header};
use crate::carrier::lines;
use crate::role::Address;

impl Ethernet {
    /// A new frame to a member with room for `bytes` behind its header.
    fn begin(&mut self, to: Address, bytes: usize) -> Option<Mbuf> {
        let Some(mut frame) = self.buffers.borrow_mut().cache.alloc() else {
            self.unsent.no_buffer += 1;
            return None;
        };
        let total = ETHERNET + bytes;
        let fits = total <= self.config.max_frame && total <= frame.tailroom();
        let header = frame.append(ETHERNET).filter(|_| fits);
        if let Some(header) = header.and_then(|header| header.first_chunk_mut()) {
            write_header(header, mac_of(self.from), to);
            return Some(frame);
        }
        self.buffers.borrow_mut().cache.free(frame);
        self.unsent.oversize += 1;
        None
    }

    fn push(&mut self, place: usize, frame: Mbuf) {
        let routes = &self.config.routes;
        let sender = routes.place(self.from).filter(|_| routes.by_sender);
        let way = usize::from(routes.ways[sender.unwrap_or(place)]);
        let cache = &mut self.buffers.borrow_mut().cache;
        if let Some(frame) = self.ways[way].push(frame, cache) {
            cache.free(frame);
            self.unsent.queue_full += 1;
        }
    }

    /// Adds a message of so many bytes to the frame that is gathered for a member: the room to write it.
    #[inline]
    pub(super) fn gather(&mut self, place: usize, to: Address, bytes: usize) -> Option<&mut [u8]> {
        let (is_new, most) = (self.is_unnamed(place), self.config.max_frame);
        let fits = |frame: &Mbuf| frame.len() + bytes <= most && bytes <= frame.tailroom();
        if is_new || !self.gathered[place].as_ref().is_some_and(fits) {
            return self.gather_anew(place, to, bytes);
        }
        let room = self.gathered[place].as_mut()?.append(bytes)?;
        lines::to_write(room);
        Some(room)
    }

    /// As [`Self::gather`], with a new frame.
    fn gather_anew(&mut self, place: usize, to: Address, bytes: usize) -> Option<&mut [u8]> {
        if let Some(full) = self.gathered[place].take() {
            self.push(place, full);
        } else {
            self.open.push(place as u16);
        }
        self.gathered[place] = self.begin(to, bytes);
        if self.gathered[place].is_none() {
            self.open.retain(|&open| usize::from(open) != place);
        }
        let room = self.gathered[place].as_mut()?.append(bytes)?;
        lines::to_write(room);
        Some(room)
    }

    /// Removes a message that was not written from the frame that is gathered for a member.
    #[cold]
    pub(super) fn take_back(&mut self, place: usize, bytes: usize) {
        if let Some(frame) = &mut self.gathered[place] {
            frame.truncate(frame.len() - bytes);
        }
        if let Some(empty) = self.gathered[place].take_if(|frame| frame.len() <= ETHERNET) {
            self.open.retain(|&open| usize::from(open) != place);
            self.buffers.borrow_mut().cache.free(empty);
        }
    }

    /// Whether the switch is to learn from a frame to the member at a place where its sender is. The
    /// members of a process share frames otherwise: a frame has the address of the first sender.
    #[inline]
    fn is_unnamed(&mut self, place: usize) -> bool {
        let routes = &self.config.routes;
        if !routes.is_over_switch(place) {
            return false;
        }
        let named = routes.place(self.from);
        let named = named.and_then(|sender| self.named.get_mut(sender));
        named.is_some_and(|named| !std::mem::replace(named, true))
    }

    /// Ends the frames that are gathered.
    pub(super) fn close(&mut self) {
        while let Some(place) = self.open.pop() {
            let place = usize::from(place);
            if let Some(frame) = self.gathered[place].take() {
                self.push(place, frame);
            }
        }
    }
}
