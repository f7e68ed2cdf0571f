//! Pages of a rig's memory in the TLB, and lists in pages that do not follow each other.

use pollux_card_model::SimulatedCard;
use pollux_card_model::registers::tlb;

use super::page::Page;
use super::{Rig, VIRTUAL};

/// The smallest page.
const LEAST: usize = 4096;

impl<C: SimulatedCard> Rig<C> {
    /// Makes an entry of the TLB a page.
    pub fn enter(&mut self, entry: usize, page: Page) {
        self.leave(entry);
        let (virt, bus) = (VIRTUAL + page.virt, self.base + page.at);
        self.write64(&tlb::THIS, 0, tlb::ENTRY_VIRTUAL, entry, virt);
        self.write64(&tlb::THIS, 0, tlb::ENTRY_BUS, entry, bus);
        self.write(&tlb::THIS, 0, tlb::ENTRY_KEY, entry, page.key);
        let rights = u32::from(!page.writable) << 2;
        let control = page.func << 16 | page.log2 << 8 | rights | 1;
        self.write(&tlb::THIS, 0, tlb::ENTRY_CTRL, entry, control);
        self.pages.insert(entry, page);
    }

    /// Makes an entry invalid. Payloads that lie in its page are no longer read from there.
    pub fn leave(&mut self, entry: usize) {
        self.write(&tlb::THIS, 0, tlb::ENTRY_CTRL, entry, 0);
        self.pages.remove(&entry);
    }

    /// Waits until nothing uses entries that are invalid; `false` if that does not end.
    pub fn unmap(&self, number: u32) -> bool {
        self.write(&tlb::THIS, 0, tlb::INVALIDATE, 0, number);
        (0..1000).any(|_| self.read(&tlb::THIS, 0, tlb::INVALIDATED, 0) == number)
    }

    /// Bytes of the first list in a page that begins with the memory.
    #[must_use]
    pub fn page_of_lists(&self, page: Page) -> Vec<u8> {
        self.memory_at(page.at as usize + super::LISTS_AT, super::LIST_BYTES)
    }

    /// Memory of a list, at virtual addresses; nothing where there is no page.
    pub(super) fn list_memory(&self, virt: usize, len: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < len {
            let at = (virt + bytes.len()) as u64;
            let there = (LEAST - at as usize % LEAST).min(len - bytes.len());
            let page = self.pages.values().find(|page| {
                page.func == 0 && at >> page.log2 == page.virt >> page.log2 && at >= page.virt
            });
            match page {
                Some(page) => {
                    bytes.extend(self.memory_at((page.at + at - page.virt) as usize, there));
                }
                None => bytes.resize(bytes.len() + there, 0),
            }
        }
        bytes
    }
}
