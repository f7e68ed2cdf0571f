//! Announcements: frames to all from which switches learn where members are, as from a gratuitous ARP.
//!
//! Flow control messages return to the scheduler, which may have nothing to send over the switch: frames to
//! an address that a switch does not know go to all of its ports.

use super::Ethernet;
use crate::carrier::frame::{ANNOUNCEMENT, write_announcement};

impl Ethernet {
    /// Announces the members of the loop that are reached over a switch.
    pub(super) fn announce_all(&mut self) {
        for place in 0..self.config.routes.ways.len() {
            let routes = &self.config.routes;
            let Some(member) = routes.member(place) else {
                continue;
            };
            // Each has a queue of its own to the switch, or all have the first one.
            let way = if routes.by_sender {
                let is_own = self.config.owners.contains(&member);
                is_own.then_some(routes.ways[place])
            } else {
                routes.is_own(place).then_some(0)
            };
            let Some(way) = way.and_then(|way| self.ways.get_mut(usize::from(way))) else {
                continue;
            };
            let cache = &mut self.buffers.borrow_mut().cache;
            let Some(mut frame) = cache.alloc() else {
                self.unsent.no_buffer += 1;
                continue;
            };
            let room = frame.append(ANNOUNCEMENT);
            if let Some(room) = room.and_then(|room| room.first_chunk_mut()) {
                write_announcement(room, member);
                if let Some(frame) = way.push(frame, cache) {
                    cache.free(frame);
                    self.unsent.queue_full += 1;
                }
            } else {
                cache.free(frame);
                self.unsent.oversize += 1;
            }
        }
    }
}
