//! Back ends with correct messages and corrupt rings: each violation is counted, and costs a frame
//! or the session.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;

use pollux_pmd::Cause;

use crate::raw::{
    GET_FEATURES, GET_VRING_BASE, IN_ORDER, PACKED, Raw, SET_MEM_TABLE, SET_VRING_ADDR, VERSION_1,
    poll_until, violations, wait_for_violations,
};
use crate::support::{Place, Port, pass, spec};

/// Descriptors in each ring of a [`Port`].
pub(crate) const SIZE: u64 = 128;
/// The receive queue and the transmit queue.
pub(crate) const RX: u32 = 0;
const TX: u32 = 1;
/// Bytes of a frame and the header in front of it (virtio 1.2 section 5.1.6).
const HEADER: u32 = 12;
const FRAME: u32 = HEADER + 60;
/// A used descriptor of a packed ring's first lap: AVAIL and USED (section 2.8.1).
const USED: u16 = 1 << 7 | 1 << 15;

/// A region of the front end: its address, length, offset in its file, and file.
pub(crate) struct Region(pub(crate) u64, pub(crate) u64, u64, pub(crate) OwnedFd);

/// A back end that is set up by hand, up to the rings.
pub(crate) struct Back {
    pub(crate) raw: Raw,
    pub(crate) regions: Vec<Region>,
    /// Descriptors and used ring of each.
    rings: BTreeMap<u32, [u64; 2]>,
}

impl Back {
    /// Serves the next connection until the front end has got all replies.
    pub(crate) fn accept(listener: &UnixListener, features: u64) -> Self {
        let mut back = Self {
            raw: Raw::new(listener.accept().unwrap().0),
            regions: Vec::new(),
            rings: BTreeMap::new(),
        };
        // The front end requests the features once more at the end of the set-up.
        let mut asked = 0;
        while asked < 2 {
            asked += u32::from(back.answer(VERSION_1 | features) == Some(GET_FEATURES));
        }
        back
    }

    /// Executes the next request; returns its number.
    pub(crate) fn answer(&mut self, features: u64) -> Option<u32> {
        let mut fds = Vec::new();
        let (number, payload) = self.raw.receive_with(&mut fds)?;
        let words: Vec<_> = payload
            .chunks_exact(8)
            .map(|word| u64::from_ne_bytes(word.try_into().unwrap()))
            .collect();
        match number {
            GET_FEATURES => drop(self.raw.flagged(number, 5, &features.to_ne_bytes(), &[])),
            GET_VRING_BASE => drop(self.raw.flagged(number, 5, &payload, &[])),
            SET_MEM_TABLE => {
                let regions = words[1..].chunks_exact(4).zip(fds);
                let regions = regions.map(|(at, fd)| Region(at[2], at[1], at[3], fd));
                self.regions = regions.collect();
            }
            SET_VRING_ADDR => {
                self.rings.insert(words[0] as u32, [words[1], words[2]]);
            }
            _ => {}
        }
        Some(number)
    }

    /// The file of an address of the front end, and the offset in it.
    fn find(&self, address: u64) -> (&OwnedFd, u64) {
        let found = |region: &&Region| (region.0..region.0 + region.1).contains(&address);
        let Region(start, _, offset, file) = self.regions.iter().find(found).unwrap();
        (file, offset + address - start)
    }

    fn write(&self, address: u64, bytes: &[u8]) {
        let (file, offset) = self.find(address);
        assert_eq!(rustix::io::pwrite(file, bytes, offset), Ok(bytes.len()));
    }

    /// Addresses of the buffers posted in a split ring.
    pub(crate) fn posted(&self, ring: u32) -> BTreeSet<u64> {
        let [descriptors, _] = self.rings[&ring];
        let address = |slot| {
            let (file, offset) = self.find(descriptors + 16 * slot);
            let mut word = [0; 8];
            assert_eq!(rustix::io::pread(file, &mut word, offset), Ok(8));
            u64::from_le_bytes(word)
        };
        (0..SIZE)
            .map(address)
            .filter(|&address| address != 0)
            .collect()
    }

    /// An entry of a split ring's used ring (section 2.7.8).
    fn used(&self, ring: u32, entry: u64, id: u32, len: u32) {
        let [_, used] = self.rings[&ring];
        self.write(
            used + 4 + 8 * (entry % SIZE),
            &[id, len].map(u32::to_le_bytes).concat(),
        );
    }

    /// Sets the used index of a split ring.
    pub(crate) fn index(&self, ring: u32, index: u16) {
        let [_, used] = self.rings[&ring];
        self.write(used + 2, &index.to_le_bytes());
    }

    /// A used descriptor of a packed ring (section 2.8).
    fn packed(&self, ring: u32, slot: u64, id: u16, len: u32) {
        let [descriptors, _] = self.rings[&ring];
        let at = descriptors + 16 * slot;
        self.write(
            at + 8,
            &[&len.to_le_bytes()[..], &id.to_le_bytes()].concat(),
        );
        // The flags last: they publish the descriptor.
        self.write(at + 14, &USED.to_le_bytes());
    }

    /// Writes random bytes over rings, from the first descriptor to the last used entry.
    fn scribble(&self, random: &mut impl FnMut() -> u64) {
        for [descriptors, used] in self.rings.values() {
            for _ in 0..16 {
                let at = match random() % 3 {
                    0 => descriptors + random() % (16 * SIZE - 8),
                    // Its index, which announces entries.
                    1 => used + 2,
                    _ => used + random() % (8 * SIZE - 8),
                };
                let len = if at == used + 2 { 2 } else { 8 };
                self.write(at, &random().to_le_bytes()[..len]);
            }
        }
    }
}

/// A violation of a back end.
struct Violation {
    name: &'static str,
    features: u64,
    act: fn(&Back),
    /// Frames received, and frames lost and counted.
    frames: u64,
    lost: u64,
    /// The ring is broken: the session ends, and a violation is counted.
    ends: bool,
}

const fn violation(name: &'static str, features: u64, act: fn(&Back)) -> Violation {
    let (frames, lost, ends) = (0, 1, true);
    Violation {
        name,
        features,
        act,
        frames,
        lost,
        ends,
    }
}

const VIOLATIONS: &[Violation] = &[
    violation("an index that jumps ahead", 0, |back| {
        back.index(RX, SIZE as u16 + 1);
    }),
    violation("an index that jumps ahead, in order", IN_ORDER, |back| {
        back.index(RX, u16::MAX);
    }),
    violation("an id that no ring has", 0, |back| {
        back.used(RX, 0, 1 << 16, FRAME);
        back.index(RX, 1);
    }),
    violation("an id behind the ring's last", 0, |back| {
        back.used(RX, 0, SIZE as u32, FRAME);
        back.index(RX, 1);
    }),
    Violation {
        frames: 1,
        ..violation("a buffer that is used twice", 0, |back| {
            back.used(RX, 0, 7, FRAME);
            back.used(RX, 1, 7, FRAME);
            back.index(RX, 2);
        })
    },
    violation("another buffer than the next, in order", IN_ORDER, |back| {
        back.used(RX, 0, 1, FRAME);
        back.index(RX, 1);
    }),
    Violation {
        frames: 1,
        lost: 3,
        ends: false,
        ..violation("lengths that were not posted", 0, |back| {
            for (entry, len) in (0..).zip([1 << 20, u32::MAX, HEADER - 1, FRAME]) {
                back.used(RX, entry, entry as u32, len);
            }
            back.index(RX, 4);
        })
    },
    violation("an id that no packed ring has", PACKED, |back| {
        back.packed(RX, 0, SIZE as u16, FRAME);
    }),
    Violation {
        frames: 1,
        ..violation(
            "a buffer of a packed ring that is used twice",
            PACKED,
            |back| {
                back.packed(RX, 1, 5, FRAME);
                back.packed(RX, 0, 5, FRAME);
            },
        )
    },
    Violation {
        frames: 1,
        lost: 2,
        ends: false,
        ..violation("lengths that were not posted, packed", PACKED, |back| {
            for (slot, len) in (0..).zip([1 << 20, HEADER, FRAME]) {
                back.packed(RX, slot, slot as u16, len);
            }
        })
    },
    Violation {
        lost: 0,
        ..violation("sent frames that were not posted", 0, |back| {
            back.index(TX, SIZE as u16 + 1);
        })
    },
];

fn lost(port: &Port) -> u64 {
    let balance = port.started.rx[0].tally().balance();
    balance.dropped_for(Cause::DeviceError)
}

/// A correct back end is then served as if nothing had happened.
fn goes_on(place: &Place, listener: UnixListener, port: &mut Port) {
    drop(listener);
    std::fs::remove_file(place.socket()).unwrap();
    let mut back = Port::open(&spec(&place.socket(), "role=device,server"), 1);
    back.wait_up(true);
    port.wait_up(true);
    pass(port, &mut back, 0, &[64; 100]);
    pass(&mut back, port, 0, &[64; 100]);
    back.stop();
}

#[test]
fn each_lie_of_a_ring_is_counted() {
    let place = Place::new();
    let listener = UnixListener::bind(place.socket()).unwrap();
    let mut port = Port::open(&spec(&place.socket(), ""), 1);
    let (mut sessions, mut frames, mut losses) = (0, 0, 0);
    for violation in VIOLATIONS {
        println!("{}", violation.name);
        let back = Back::accept(&listener, violation.features);
        port.wait_up(true);
        (violation.act)(&back);
        sessions += u64::from(violation.ends);
        (frames, losses) = (frames + violation.frames, losses + violation.lost);
        let came = wait_for_violations(&mut port, sessions)
            + poll_until(&mut port, |port| lost(port) == losses);
        assert_eq!(came, violation.frames);
        if violation.ends {
            back.raw.until_closed();
        }
    }
    goes_on(&place, listener, &mut port);
    assert_eq!(violations(&port), sessions);
    let (received, ..) = port.stop();
    assert_eq!(received.from_wire, frames + losses + 100);
    assert_eq!(received.dropped_for(Cause::DeviceError), losses);
}

#[test]
fn whatever_is_written_over_the_rings_is_survived() {
    let place = Place::new();
    let listener = UnixListener::bind(place.socket()).unwrap();
    let mut port = Port::open(&spec(&place.socket(), ""), 1);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..12 {
        let features = [0, PACKED, IN_ORDER, PACKED | IN_ORDER][round % 4];
        let back = Back::accept(&listener, features);
        port.wait_up(true);
        for _ in 0..20 {
            back.scribble(&mut random);
            port.poll(0);
            port.send(0, &vec![vec![0; 60]; 8]);
        }
    }
    assert!(lost(&port) > 0);
    goes_on(&place, listener, &mut port);
    assert!((1..=12).contains(&violations(&port)));
    port.stop();
}
