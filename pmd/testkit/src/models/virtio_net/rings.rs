//! The device's side of the model's queues: virtio 1.2 sections 2.7 (split) and 2.8 (packed).

use crate::fake::World;

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
const AVAILABLE: u16 = 1 << 7;
const USED: u16 = 1 << 15;

/// No piece of a buffer is longer.
const LONGEST: u32 = 1 << 17;

/// A queue.
#[derive(Clone)]
pub(super) struct Queue {
    pub(super) size: u16,
    pub(super) enabled: bool,
    /// The interrupt that tells of what was used; all ones for none.
    pub(super) vector: u16,
    /// Descriptors, the driver's area, the device's area.
    pub(super) areas: [u64; 3],
    /// Chains that were taken, and that were given back.
    taken: u16,
    given: u16,
    /// Of a packed ring: the slot and the wrap counter of either.
    next: (u16, bool),
    done: (u16, bool),
}

/// What the driver has made available in one piece.
pub(super) struct Chain {
    id: u16,
    /// Descriptors of the ring.
    slots: u16,
    /// Address, length, whether it is for the device to write.
    pieces: Vec<(u64, u32, bool)>,
    /// Some of the pieces were in a table of their own.
    table: bool,
}

impl Chain {
    /// Whether it was described by a table.
    pub(super) fn has_table(&self) -> bool {
        self.table
    }

    /// Bytes that the device may write.
    pub(super) fn writable(&self) -> usize {
        let lens = self.pieces.iter().filter(|piece| piece.2);
        lens.map(|piece| piece.1 as usize).sum()
    }

    /// All that there is to read.
    pub(super) fn read(&self, world: &mut World) -> Vec<u8> {
        let mut all = Vec::new();
        for &(at, len, _) in self.pieces.iter().filter(|piece| !piece.2) {
            let mut bytes = vec![0; len as usize];
            world.read(at, &mut bytes);
            all.extend(bytes);
        }
        all
    }

    /// Writes to the front of what may be written.
    pub(super) fn write(&self, world: &mut World, mut bytes: &[u8]) {
        for &(at, len, _) in self.pieces.iter().filter(|piece| piece.2) {
            let (now, later) = bytes.split_at(bytes.len().min(len as usize));
            world.write(at, now);
            bytes = later;
        }
    }
}

fn read16(world: &mut World, at: u64) -> u16 {
    let mut bytes = [0; 2];
    world.read(at, &mut bytes);
    u16::from_le_bytes(bytes)
}

/// Address, length, and the two last fields: flags and next in a split ring, id and flags in a
/// packed one.
fn descriptor(world: &mut World, at: u64) -> (u64, u32, [u16; 2]) {
    let mut bytes = [0; 16];
    world.read(at, &mut bytes);
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = bytes;
    (
        u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        u32::from_le_bytes([i, j, k, l]),
        [u16::from_le_bytes([m, n]), u16::from_le_bytes([o, p])],
    )
}

impl Queue {
    pub(super) fn new(size: u16) -> Self {
        Self {
            size,
            enabled: false,
            vector: u16::MAX,
            areas: [0; 3],
            taken: 0,
            given: 0,
            next: (0, true),
            done: (0, true),
        }
    }

    /// Whether there can be such a queue. More than the standard asks: entries of a used ring that
    /// lie across two pages are what QEMU writes half of to another page of the guest.
    pub(super) fn check(&self, packed: bool) -> Result<(), &'static str> {
        if self.size == 0 || !(packed || self.size.is_power_of_two()) {
            return Err("no such size");
        }
        let aligns = if packed { [16, 4, 4] } else { [16, 2, 4] };
        let mut both = self.areas.iter().zip(aligns);
        if !both.all(|(&area, align)| area != 0 && area.is_multiple_of(align)) {
            return Err("its areas are not where they can be");
        }
        if !packed && !(self.areas[2] + 4).is_multiple_of(8) {
            return Err("an entry of its used ring can lie across two pages");
        }
        Ok(())
    }

    /// The next chain, if there is one.
    pub(super) fn take(
        &mut self,
        world: &mut World,
        packed: bool,
    ) -> Result<Option<Chain>, &'static str> {
        let chain = if packed {
            self.take_packed(world)?
        } else {
            self.take_split(world)?
        };
        let Some(chain) = chain else { return Ok(None) };
        if chain.pieces.iter().any(|piece| piece.1 > LONGEST) {
            return Err("a buffer longer than any frame");
        }
        // What is read comes first (sections 2.7.4.2 and 2.8.4).
        if chain.pieces.is_sorted_by_key(|piece| piece.2) {
            Ok(Some(chain))
        } else {
            Err("a buffer to be written in front of one to be read")
        }
    }

    fn take_split(&mut self, world: &mut World) -> Result<Option<Chain>, &'static str> {
        let [descriptors, driver, _] = self.areas;
        let size = self.size;
        if size == 0 || self.taken == read16(world, driver + 2) {
            return Ok(None);
        }
        let id = read16(world, driver + 4 + 2 * u64::from(self.taken % size));
        let mut chain = Chain {
            id,
            slots: 0,
            pieces: Vec::new(),
            table: false,
        };
        let mut at = id;
        loop {
            if at >= size || chain.slots >= size {
                return Err("a chain that leaves the table, or never ends");
            }
            let (address, len, [flags, next]) = descriptor(world, descriptors + 16 * u64::from(at));
            chain.slots += 1;
            if flags & INDIRECT != 0 {
                self.indirect(world, address, len, false, &mut chain)?;
            } else {
                chain.pieces.push((address, len, flags & WRITE != 0));
            }
            if flags & NEXT == 0 {
                break;
            }
            at = next;
        }
        self.taken = self.taken.wrapping_add(1);
        Ok(Some(chain))
    }

    fn take_packed(&mut self, world: &mut World) -> Result<Option<Chain>, &'static str> {
        if self.size == 0 {
            return Ok(None);
        }
        let mut chain = Chain {
            id: 0,
            slots: 0,
            pieces: Vec::new(),
            table: false,
        };
        let mut at = self.next;
        loop {
            let (address, len, [id, flags]) =
                descriptor(world, self.areas[0] + 16 * u64::from(at.0));
            if chain.slots == 0 && ((flags & AVAILABLE != 0) != at.1 || (flags & USED != 0) == at.1)
            {
                return Ok(None);
            }
            chain.id = id;
            chain.slots += 1;
            if chain.slots > self.size {
                return Err("a chain that never ends");
            }
            if flags & INDIRECT != 0 {
                self.indirect(world, address, len, true, &mut chain)?;
            } else {
                chain.pieces.push((address, len, flags & WRITE != 0));
            }
            at = self.behind(at, 1);
            if flags & NEXT == 0 {
                break;
            }
        }
        self.next = at;
        Ok(Some(chain))
    }

    /// The pieces in a table of its own (sections 2.7.5.3 and 2.8.7).
    fn indirect(
        &self,
        world: &mut World,
        table: u64,
        len: u32,
        packed: bool,
        chain: &mut Chain,
    ) -> Result<(), &'static str> {
        let count = len / 16;
        if count == 0 || !len.is_multiple_of(16) || count > self.size.into() {
            return Err("a table of no length that there can be");
        }
        chain.table = true;
        for i in 0..count {
            let (address, len, [first, second]) = descriptor(world, table + 16 * u64::from(i));
            let flags = if packed { second } else { first };
            if flags & INDIRECT != 0 {
                return Err("a table in a table");
            }
            if !packed && (flags & NEXT != 0) != (i + 1 < count) {
                return Err("a table whose chain is not the whole of it");
            }
            chain.pieces.push((address, len, flags & WRITE != 0));
        }
        Ok(())
    }

    fn behind(&self, (slot, wrap): (u16, bool), n: u16) -> (u16, bool) {
        match u32::from(slot) + u32::from(n) {
            slot if slot < self.size.into() => (slot as u16, wrap),
            slot => ((slot - u32::from(self.size)) as u16, !wrap),
        }
    }

    /// Says whether the driver should tell of what it makes available (sections 2.7.10 and 2.8.13).
    pub(super) fn ask_to_be_told(&self, world: &mut World, packed: bool, wanted: bool) {
        let at = self.areas[2] + if packed { 2 } else { 0 };
        world.write(at, &u16::from(!wanted).to_le_bytes());
    }

    /// Gives a chain back.
    pub(super) fn give(&mut self, world: &mut World, packed: bool, chain: &Chain, written: u32) {
        if packed {
            let (slot, wrap) = self.done;
            let at = self.areas[0] + 16 * u64::from(slot);
            world.write(at + 8, &written.to_le_bytes());
            world.write(at + 12, &chain.id.to_le_bytes());
            let flags = if wrap { AVAILABLE | USED } else { 0 };
            world.write(at + 14, &flags.to_le_bytes());
            self.done = self.behind(self.done, chain.slots);
        } else {
            let used = self.areas[2];
            let at = used + 4 + 8 * u64::from(self.given % self.size);
            world.write(at, &u32::from(chain.id).to_le_bytes());
            world.write(at + 4, &written.to_le_bytes());
            self.given = self.given.wrapping_add(1);
            world.write(used + 2, &self.given.to_le_bytes());
        }
        // Where the driver has not said that it looks by itself (sections 2.7.7 and 2.8.14).
        let flags = read16(world, self.areas[1] + if packed { 2 } else { 0 });
        if flags & 1 == 0 {
            world.interrupt(self.vector);
        }
    }
}
