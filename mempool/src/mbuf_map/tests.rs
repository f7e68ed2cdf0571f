//! What is received and sent, frame by frame and eight at a time, against what was said of each.
#![allow(clippy::unwrap_used)]

use core::ptr::{self, NonNull};

use super::isa::Isa;
use super::{Arrivals, MbufMap, MbufSlot, WINDOW};
use crate::mbuf::Mbuf;
use crate::region::PageSize;
use crate::time::Tsc;
use crate::{Burst, Mempool, PoolConfig};

const SPACING: usize = 192;
const BUFFERS: usize = 48;
/// More than two turns of eight, and a rest.
const FRAMES: usize = 21;

/// A layout in which nothing lies where a header has it.
#[derive(Debug)]
struct ShadowMbuf;

// SAFETY: an array of `SPACING` bytes, of which the window is 32.
unsafe impl MbufSlot for ShadowMbuf {
    const SPACING: usize = SPACING;
    const AT: usize = 24;
    const OFFSET: usize = 6;
    const LEN: usize = 18;
    const TOTAL: usize = 21;
    const HEADROOM: u16 = 64;
    const PLAIN: [u8; WINDOW] = {
        let mut plain = [0; WINDOW];
        plain[0] = 1;
        plain[8] = 0xa5;
        plain[31] = 7;
        plain
    };
    const REQUIRED: [u8; WINDOW] = {
        let mut required = [0; WINDOW];
        required[0] = 0xff;
        required[8] = 0x81;
        required[31] = 0x10;
        required
    };
}

/// The same layout, whose elements usually have more headroom than a small room has bytes.
#[derive(Debug)]
struct Large;

// SAFETY: as for `ShadowMbuf`.
unsafe impl MbufSlot for Large {
    const SPACING: usize = SPACING;
    const AT: usize = ShadowMbuf::AT;
    const OFFSET: usize = ShadowMbuf::OFFSET;
    const LEN: usize = ShadowMbuf::LEN;
    const TOTAL: usize = ShadowMbuf::TOTAL;
    const HEADROOM: u16 = 128;
    const PLAIN: [u8; WINDOW] = ShadowMbuf::PLAIN;
    const REQUIRED: [u8; WINDOW] = ShadowMbuf::REQUIRED;
}

/// The ways that this CPU has, the plain one first.
fn ways() -> impl Iterator<Item = Option<Isa>> {
    let vectors = Isa::detect();
    if vectors.is_none() {
        println!("skipped: eight frames at a time: this CPU lacks AVX-512 VBMI");
    }
    [None].into_iter().chain(vectors.map(Some))
}

/// A pool, its map, and all its buffers without a handle.
struct Side {
    pool: Mempool,
    elements: Vec<[u8; SPACING]>,
    map: MbufMap<ShadowMbuf>,
    free: Vec<*mut u8>,
}

impl Side {
    fn new(vectors: Option<Isa>, data_room: usize) -> Self {
        Self::with_headroom(vectors, data_room, PoolConfig::default().headroom)
    }

    fn with_headroom(vectors: Option<Isa>, data_room: usize, headroom: usize) -> Self {
        let pool = Mempool::new(PoolConfig {
            buffers: BUFFERS,
            data_room,
            headroom,
            pages: PageSize::Kib4,
            ..PoolConfig::default()
        })
        .unwrap();
        // What is in a window is known; what is around it shall stay.
        let mut elements = vec![[0x5a; SPACING]; BUFFERS];
        let first = NonNull::new(elements.as_mut_ptr()).unwrap().cast();
        // SAFETY: an element for each buffer, which stay with the value that is returned.
        let mut map = unsafe { pool.mbuf_map::<ShadowMbuf>(first) };
        map.vectors = vectors;
        let mut burst = Burst::<BUFFERS>::new();
        assert_eq!(pool.alloc_burst(&mut burst, BUFFERS), BUFFERS);
        let mut free = Vec::new();
        burst.take_all(|mbuf| {
            free.push(map.element(&mbuf).unwrap().as_ptr());
            core::mem::forget(mbuf);
        });
        Self {
            pool,
            elements,
            map,
            free,
        }
    }

    /// The first element.
    fn first(&self) -> NonNull<u8> {
        NonNull::from(&self.elements[..]).cast()
    }

    /// Writes the window of an element.
    fn say(element: *mut u8, window: [u8; WINDOW]) {
        // SAFETY: an element of the array, and nothing else accesses it.
        unsafe {
            element
                .add(ShadowMbuf::AT)
                .cast::<[u8; WINDOW]>()
                .write(window);
        }
    }

    /// The handle of a buffer that has none.
    fn take(&self, number: usize) -> Mbuf {
        // SAFETY: its handle was forgotten, and no other is made of this one until that is.
        unsafe { self.map.handle(NonNull::new(self.free[number]).unwrap()) }
    }

    /// The pool is whole once all buffers without a handle are back.
    fn close(self) {
        (0..BUFFERS).for_each(|number| drop(self.take(number)));
        assert_eq!(self.pool.available(), BUFFERS);
    }
}

/// A window that says this, with all that does not matter set.
fn window(offset: u16, len: u16) -> [u8; WINDOW] {
    let mut window = ShadowMbuf::PLAIN;
    for (byte, required) in window.iter_mut().zip(ShadowMbuf::REQUIRED) {
        *byte |= !required;
    }
    window[ShadowMbuf::OFFSET..ShadowMbuf::OFFSET + 2].copy_from_slice(&offset.to_le_bytes());
    window[ShadowMbuf::LEN..ShadowMbuf::LEN + 2].copy_from_slice(&len.to_le_bytes());
    window
}

/// What a device may say of one frame of a burst, and whether that makes it one for `receive`.
fn sayings(room: u16) -> Vec<([u8; WINDOW], bool)> {
    let mut sayings = vec![
        (window(64, 60), true),
        (window(0, 0), true),
        (window(64, room - 64), true),
        (window(65, room - 65), true),
        (window(room, 0), true),
        (window(0, room), true),
        (window(64, room - 63), false),
        (window(room + 1, 0), false),
        (window(u16::MAX, u16::MAX), false),
        (window(0, u16::MAX), false),
    ];
    for bit in 0..8 * WINDOW {
        if ShadowMbuf::REQUIRED[bit / 8] & 1 << (bit % 8) != 0 {
            let mut window = window(64, 100);
            window[bit / 8] ^= 1 << (bit % 8);
            sayings.push((window, false));
        }
    }
    sayings
}

#[test]
fn frames_are_received_up_to_the_first_that_is_not_plain() {
    let from = Arrivals {
        port: 7,
        queue: 3,
        first: u32::MAX - 4,
        at: Tsc(0x1234_5678_9abc),
    };
    let room = 2176;
    for vectors in ways() {
        let side = Side::new(vectors, 2048);
        assert_eq!(side.pool.stride(), usize::from(room));
        let frames = &side.free[..FRAMES];
        let places =
            (0..FRAMES).flat_map(|place| sayings(room).into_iter().map(move |said| (place, said)));
        for (place, (said, is_plain)) in places {
            let usual = |i: usize| window(64 - i as u16, 1000 + i as u16);
            for (i, &element) in frames.iter().enumerate() {
                Side::say(element, if i == place { said } else { usual(i) });
            }
            let mut out = Burst::<BUFFERS>::new();
            // SAFETY: all windows can be read, and all handles were forgotten.
            let (n, bytes) = unsafe { side.map.receive(frames, &mut out.as_mut(), from) };
            assert_eq!(n, if is_plain { FRAMES } else { place });
            assert_eq!(bytes, out.iter().map(|mbuf| mbuf.len() as u64).sum::<u64>());
            for (i, mbuf) in out.iter().enumerate() {
                let half =
                    |window: [u8; WINDOW], at| u16::from_le_bytes([window[at], window[at + 1]]);
                let told = if i == place { said } else { usual(i) };
                let (offset, len) = (half(told, ShadowMbuf::OFFSET), half(told, ShadowMbuf::LEN));
                assert_eq!(side.map.element(mbuf).unwrap().as_ptr(), frames[i]);
                assert_eq!((mbuf.headroom(), mbuf.len()), (offset.into(), len.into()));
                assert_eq!((mbuf.total_len(), mbuf.segment_count()), (len.into(), 1));
                assert_eq!((mbuf.port(), mbuf.queue(), mbuf.arrival()), (7, 3, from.at));
                assert_eq!(mbuf.ordinal(), from.first.wrapping_add(i as u32));
                assert_eq!((mbuf.wire_time(), mbuf.checksum_request()), (None, None));
                assert!(mbuf.is_plain(side.pool.inner_ptr()));
            }
            out.take_all(core::mem::forget);
        }
        side.close();
    }
}

/// A room smaller than the headroom that an element usually has: no place behind it is taken.
#[test]
fn data_outside_of_a_small_room_ends_it_too() {
    let from = Arrivals {
        port: 0,
        queue: 0,
        first: 0,
        at: Tsc(1),
    };
    for vectors in ways() {
        let side = Side::with_headroom(vectors, 64, 0);
        let room = side.pool.stride() as u16;
        assert!(room <= Large::HEADROOM);
        // SAFETY: as in `Side::new`, whose array this is.
        let mut map = unsafe { side.pool.mbuf_map::<Large>(side.first()) };
        map.vectors = vectors;
        for (offset, is_inside) in [(room, true), (room + 1, false), (Large::HEADROOM, false)] {
            let frames = &side.free[..FRAMES];
            for &element in frames {
                Side::say(element, window(offset, 0));
            }
            let mut out = Burst::<BUFFERS>::new();
            // SAFETY: all windows can be read, and all handles were forgotten.
            let got = unsafe { map.receive(frames, &mut out.as_mut(), from) };
            assert_eq!(got.0, if is_inside { FRAMES } else { 0 }, "{offset}");
            out.take_all(core::mem::forget);
        }
        side.close();
    }
}

#[test]
fn a_frame_of_elsewhere_and_a_full_burst_end_it() {
    let from = Arrivals {
        port: 0,
        queue: 0,
        first: 0,
        at: Tsc(1),
    };
    for vectors in ways() {
        let side = Side::new(vectors, 2048);
        for place in 0..FRAMES {
            let mut other = [0xff; SPACING];
            other[ShadowMbuf::AT..ShadowMbuf::AT + WINDOW].copy_from_slice(&window(64, 60));
            let mut frames = side.free[..FRAMES].to_vec();
            for &element in &frames {
                Side::say(element, window(64, 60));
            }
            frames[place] = other.as_mut_ptr();
            let mut out = Burst::<BUFFERS>::new();
            // SAFETY: all windows can be read, and all handles were forgotten.
            let got = unsafe { side.map.receive(&frames, &mut out.as_mut(), from) };
            assert_eq!(got, (place, 60 * place as u64));
            let rest = &frames[place + 1..];
            // SAFETY: as above; these were not received.
            let got = unsafe { side.map.receive(rest, &mut out.up_to(place), from) };
            assert_eq!(got.0, rest.len().min(place));
            out.take_all(core::mem::forget);
        }
        side.close();
    }
}

/// What may stand between frames that can be sent as they are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Odd {
    Nothing,
    Chain,
    Foreign,
    Long,
}

#[test]
fn frames_are_sent_up_to_the_first_that_is_not_plain() {
    let other = Side::new(None, 1 << 17);
    for vectors in ways() {
        let side = Side::new(vectors, 1 << 17);
        let odds = [Odd::Nothing, Odd::Chain, Odd::Foreign, Odd::Long];
        for (place, odd) in (0..FRAMES).flat_map(|place| odds.map(|odd| (place, odd))) {
            let mut burst = Burst::<BUFFERS>::new();
            for i in 0..FRAMES {
                Side::say(side.free[i], [0xee; WINDOW]);
                let odd = if i == place { odd } else { Odd::Nothing };
                let side = if odd == Odd::Foreign { &other } else { &side };
                let mut mbuf = side.take(i);
                let len = if odd == Odd::Long {
                    1 << 16
                } else {
                    65_535 - i as u32
                };
                assert!(mbuf.set_data(3 * i as u16, len));
                if odd == Odd::Chain {
                    mbuf.chain(side.take(FRAMES)).unwrap();
                }
                burst.push(mbuf).unwrap();
            }
            let mut elements = [ptr::null_mut::<u8>(); FRAMES];
            // SAFETY: the array is alive, and the frames' owner is at it alone.
            let (n, bytes) = unsafe { side.map.send(&mut burst, &mut elements) };
            assert_eq!(n, if odd == Odd::Nothing { FRAMES } else { place });
            assert_eq!(
                bytes,
                burst[..n].iter().map(|mbuf| mbuf.len() as u64).sum::<u64>()
            );
            for (i, (mbuf, element)) in burst.iter().zip(elements).enumerate() {
                let len = 65_535 - i as u16;
                let mut told = ShadowMbuf::PLAIN;
                told[ShadowMbuf::OFFSET..][..2].copy_from_slice(&(3 * i as u16).to_le_bytes());
                told[ShadowMbuf::LEN..][..2].copy_from_slice(&len.to_le_bytes());
                told[ShadowMbuf::TOTAL..][..4].copy_from_slice(&u32::from(len).to_le_bytes());
                // Those behind are as they were.
                let told = if i < n { told } else { [0xee; WINDOW] };
                let mut expected = [0x5a; SPACING];
                expected[ShadowMbuf::AT..][..WINDOW].copy_from_slice(&told);
                // SAFETY: an element of the array, and nothing else accesses it.
                let is = unsafe { side.free[i].cast::<[u8; SPACING]>().read() };
                assert_eq!(is, expected);
                let sent = side
                    .map
                    .element(mbuf)
                    .map_or(ptr::null_mut(), NonNull::as_ptr);
                assert_eq!(element, if i < n { sent } else { ptr::null_mut() });
            }
            burst.take_all(|mut mbuf| {
                mbuf.split_off().into_iter().for_each(core::mem::forget);
                core::mem::forget(mbuf);
            });
        }
        side.close();
    }
    other.close();
}
