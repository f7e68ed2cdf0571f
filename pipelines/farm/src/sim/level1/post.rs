//! Messages between the roles in a simulation.

use crate::fragments::{Fragments, Outgoing};
use crate::message::{Fragment, Message};
use crate::role::{Address, Outbox, Transfer};

/// What a role has sent in a call.
#[derive(Debug, Default)]
pub(super) struct Post {
    pub(super) messages: Vec<(Address, Message)>,
    pub(super) transfer: Option<(u16, Fragment)>,
}

impl Outbox for Post {
    fn send(&mut self, to: Address, message: &Message) {
        self.messages.push((to, *message));
    }

    fn transfer(&mut self, node: u16, outgoing: &Outgoing<'_, impl Fragments>) -> Transfer {
        self.transfer = Some((node, outgoing.fragment()));
        Transfer::Running
    }
}

/// Things that events name by a number.
#[derive(Debug)]
pub(super) struct Table<T> {
    entries: Vec<Option<T>>,
    unused: Vec<u32>,
}

impl<T> Table<T> {
    pub(super) fn new() -> Self {
        Self {
            entries: Vec::new(),
            unused: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, entry: T) -> u32 {
        if let Some(number) = self.unused.pop() {
            self.entries[number as usize] = Some(entry);
            return number;
        }
        self.entries.push(Some(entry));
        self.entries.len() as u32 - 1
    }

    pub(super) fn get(&mut self, number: u32) -> Option<&mut T> {
        self.entries.get_mut(number as usize)?.as_mut()
    }

    pub(super) fn take(&mut self, number: u32) -> Option<T> {
        let entry = self.entries.get_mut(number as usize)?.take();
        if entry.is_some() {
            self.unused.push(number);
        }
        entry
    }
}
