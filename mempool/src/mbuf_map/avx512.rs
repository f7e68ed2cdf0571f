//! Eight frames at a time, two in a register, with AVX-512.
//!
//! Window and header have 32 bytes each that matter: a permutation of bytes makes the one of the
//! other, once what is to be the same in all plain frames was compared.

use core::arch::x86_64::{
    __m256i, __m512i, _mm256_loadu_si256, _mm256_setr_epi64x, _mm256_storeu_si256,
    _mm512_add_epi32, _mm512_broadcast_i64x4, _mm512_castsi256_si512, _mm512_castsi512_si256,
    _mm512_cmpge_epu64_mask, _mm512_cmpgt_epu16_mask, _mm512_extracti64x4_epi64,
    _mm512_inserti64x4, _mm512_loadu_si512, _mm512_mask_mov_epi8, _mm512_mask_reduce_add_epi32,
    _mm512_max_epu16, _mm512_permutexvar_epi8, _mm512_set1_epi16, _mm512_set1_epi64,
    _mm512_setzero_si512, _mm512_sub_epi64, _mm512_ternarylogic_epi64, _mm512_test_epi64_mask,
};
use core::mem::MaybeUninit;
use core::mem::offset_of;
use core::ptr::{self, NonNull};

use super::isa::Isa;
use super::map::MbufMap;
use super::slot::{Arrivals, MbufSlot, WINDOW, Words};
use crate::buffers::{Extent, Header, RawMbuf};
use crate::mbuf::Mbuf;

/// Frames of a turn: so many addresses are in one register.
pub(super) const FRAMES: usize = 8;

/// Two in each of the registers that hold frames.
const PAIRS: usize = FRAMES / 2;

/// So many turns that no sum of bytes in 32 bits runs over.
const TURNS: usize = (1 << 16) / PAIRS;

/// Of a header, what is written of a received frame, and read of one that is to be sent.
const HEADER: usize = offset_of!(Header, extent);

/// Places in that: where the data begins, segments, bytes of this one, bytes of the frame.
const OFFSET: usize = offset_of!(Extent, offset);
const SEGMENTS: usize = offset_of!(Extent, segments);
const LEN: usize = offset_of!(Extent, len);
const TOTAL: usize = offset_of!(Extent, total);

impl Isa {
    /// [`MbufMap::receive`]: turns of eight in front of the first that has a frame which is not plain,
    /// or may be too long, and the rest one by one.
    ///
    /// # Safety
    /// As there; as many slots as elements.
    #[inline]
    pub(super) unsafe fn receive<E: MbufSlot, P>(
        self,
        map: &MbufMap<E>,
        elements: &[*mut P],
        slots: &mut [MaybeUninit<RawMbuf>],
        from: Arrivals,
    ) -> (usize, u64) {
        // SAFETY: `self` proves that the CPU has the instructions; the rest by the caller's promise.
        unsafe { receive(self, map, elements, slots, from) }
    }

    /// [`MbufMap::send`]: turns of eight in front of the first that has a frame which is not plain,
    /// and the rest one by one.
    ///
    /// # Safety
    /// As there; the frames are the caller's alone, and as many as elements.
    #[inline]
    pub(super) unsafe fn send<E: MbufSlot, P>(
        self,
        map: &MbufMap<E>,
        frames: &[Mbuf],
        elements: &mut [*mut P],
    ) -> (usize, u64) {
        // SAFETY: as in `receive`.
        unsafe { send(self, map, frames, elements) }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn receive<E: MbufSlot, P>(
    _: Isa,
    map: &MbufMap<E>,
    elements: &[*mut P],
    slots: &mut [MaybeUninit<RawMbuf>],
    from: Arrivals,
) -> (usize, u64) {
    let (plain, required) = (twice(MbufMap::<E>::PLAIN), twice(MbufMap::<E>::REQUIRED));
    let limits = limits::<E>(map.room);
    let moves = const { Moves::new(&[(E::OFFSET, OFFSET), (E::LEN, LEN), (E::LEN, TOTAL)]) };
    let (places, moved) = (load(&moves.from), load(&moves.moved));
    let origin = u64::from(from.port) | u64::from(from.queue) << 16;
    let header = |place: u32| {
        let ordinal = u64::from(from.first.wrapping_add(place)) << 32;
        words_of([1 << (SEGMENTS * 8), 0, origin | ordinal, from.at.0])
    };
    let mut next = pair(header(0), header(1));
    let step = twice([0, 0, 2 << 32, 0]);
    let mut bytes = _mm512_setzero_si512();
    let mut done = 0;
    let turns = elements.as_chunks::<FRAMES>().0.iter();
    for (elements, slots) in turns.zip(slots.as_chunks_mut::<FRAMES>().0).take(TURNS) {
        let zero = _mm512_setzero_si512();
        let (mut lines, mut odd, mut largest) = ([zero; PAIRS], zero, zero);
        for (line, [a, b]) in lines.iter_mut().zip(elements.as_chunks::<2>().0) {
            // SAFETY: by the caller's promise the windows can be read.
            *line = unsafe { load_pair(a.byte_add(E::AT).cast(), b.byte_add(E::AT).cast()) };
            odd = or_differing(odd, *line, plain);
            largest = _mm512_max_epu16(largest, *line);
        }
        if outside(elements, map.elements.addr().get(), map.elements_len) != 0
            || _mm512_test_epi64_mask(odd, required) != 0
            || _mm512_cmpgt_epu16_mask(largest, limits) != 0
        {
            break;
        }
        let pairs = elements
            .as_chunks::<2>()
            .0
            .iter()
            .zip(slots.as_chunks_mut::<2>().0);
        for (line, ([a, b], [to_a, to_b])) in lines.into_iter().zip(pairs) {
            let made = or_moved(next, line, places, moved);
            next = _mm512_add_epi32(next, step);
            bytes = _mm512_add_epi32(bytes, made);
            // SAFETY: both are of the array, and their buffers have by the caller's promise no
            // handles, so nothing else accesses their headers.
            let [a, b] = unsafe {
                let [a, b] = [a, b].map(|element| map.header_at(element.addr()));
                store_pair(made, a.byte_add(HEADER).cast(), b.byte_add(HEADER).cast());
                [a, b]
            };
            to_a.write(RawMbuf(a));
            to_b.write(RawMbuf(b));
        }
        done += FRAMES;
    }
    // SAFETY: by the caller's promise.
    unsafe { map.receive_rest(elements, slots, from, (done, sum(bytes, LEN))) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn send<E: MbufSlot, P>(
    _: Isa,
    map: &MbufMap<E>,
    frames: &[Mbuf],
    elements: &mut [*mut P],
) -> (usize, u64) {
    let fresh = twice(MbufMap::<E>::PLAIN);
    // One segment, of a length whose upper half is zero.
    let plain = twice([1 << (SEGMENTS * 8), 0, 0, 0]);
    let required = twice([
        0xffff << (SEGMENTS * 8) | 0xffff << ((LEN + 2) * 8),
        0,
        0,
        0,
    ]);
    let moves = const {
        let (low, high) = ((TOTAL, E::TOTAL), (TOTAL + 2, E::TOTAL + 2));
        Moves::new(&[(OFFSET, E::OFFSET), (LEN, E::LEN), low, high])
    };
    let (places, moved) = (load(&moves.from), load(&moves.moved));
    let mut bytes = _mm512_setzero_si512();
    let turns = frames.as_chunks::<FRAMES>().0.iter();
    let mut done = 0;
    for (frames, elements) in turns.zip(elements.as_chunks_mut::<FRAMES>().0).take(TURNS) {
        let zero = _mm512_setzero_si512();
        let (mut lines, mut odd) = ([zero; PAIRS], zero);
        for (line, pair) in lines.iter_mut().zip(frames.as_chunks::<2>().0) {
            let [a, b] = pair.each_ref().map(|frame| ptr::from_ref(frame.header()));
            // SAFETY: headers of frames that are the caller's alone.
            *line = unsafe { load_pair(a.byte_add(HEADER).cast(), b.byte_add(HEADER).cast()) };
            odd = or_differing(odd, *line, plain);
        }
        if outside(frames, map.headers.addr().get(), map.headers_len) != 0
            || _mm512_test_epi64_mask(odd, required) != 0
        {
            break;
        }
        let pairs = frames
            .as_chunks::<2>()
            .0
            .iter()
            .zip(elements.as_chunks_mut::<2>().0);
        for (line, (pair, [to_a, to_b])) in lines.into_iter().zip(pairs) {
            let made = or_moved(fresh, line, places, moved);
            bytes = _mm512_add_epi32(bytes, line);
            let headers = pair.each_ref().map(|frame| ptr::from_ref(frame.header()));
            // SAFETY: both are of the pool, and by the caller's promise nothing else accesses their
            // elements.
            let [a, b] = unsafe {
                let [a, b] = headers.map(|header| map.element_at(header.addr()));
                store_pair(made, a.byte_add(E::AT), b.byte_add(E::AT));
                [a, b]
            };
            *to_a = a.as_ptr().cast();
            *to_b = b.as_ptr().cast();
        }
        done += FRAMES;
    }
    // SAFETY: by the caller's promise.
    unsafe { map.send_rest(frames, elements, (done, sum(bytes, LEN))) }
}

/// Which bytes of a pair of frames go where.
struct Moves {
    /// For each byte where it comes from.
    from: [u8; 2 * WINDOW],
    /// All bits of those that come from somewhere.
    moved: [u8; 2 * WINDOW],
}

impl Moves {
    /// Two bytes each, from one place to another.
    const fn new(halves: &[(usize, usize)]) -> Self {
        let mut moves = Self {
            from: [0; 2 * WINDOW],
            moved: [0; 2 * WINDOW],
        };
        let mut i = 0;
        while i < 4 * halves.len() {
            let (from, to) = halves[i / 4];
            let at = i % 2 + i / 2 % 2 * WINDOW;
            moves.from[to + at] = (from + at) as u8;
            moves.moved[to + at] = u8::MAX;
            i += 1;
        }
        moves
    }
}

/// The largest places and lengths of data that are in the room for sure, if no frame of a turn has
/// a larger one of either.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn limits<E: MbufSlot>(room: usize) -> __m512i {
    // Of a room that has no such headroom, what begins in it and is empty.
    let offset = room.min(E::HEADROOM.into()) as u16;
    let len = room.saturating_sub(E::HEADROOM.into()).min(u16::MAX.into()) as u16;
    let at = |place: usize| 3 << place | 3 << (place + WINDOW);
    let limits = _mm512_set1_epi16(-1);
    let limits = _mm512_mask_mov_epi8(
        limits,
        at(E::OFFSET),
        _mm512_set1_epi16(offset.cast_signed()),
    );
    _mm512_mask_mov_epi8(limits, at(E::LEN), _mm512_set1_epi16(len.cast_signed()))
}

/// Which of these addresses, pointers or handles, are not among the `len` bytes from `first` on.
#[target_feature(enable = "avx512f")]
fn outside<T>(addresses: &[T; FRAMES], first: usize, len: usize) -> u8 {
    const { assert!(size_of::<T>() == size_of::<usize>()) };
    // SAFETY: as many addresses as the register holds.
    let addresses = unsafe { _mm512_loadu_si512(addresses.as_ptr().cast()) };
    let distances = _mm512_sub_epi64(addresses, _mm512_set1_epi64(first.cast_signed() as i64));
    _mm512_cmpge_epu64_mask(distances, _mm512_set1_epi64(len.cast_signed() as i64))
}

/// `odd`, and the bits in which the line is not the other.
#[target_feature(enable = "avx512f")]
fn or_differing(odd: __m512i, line: __m512i, other: __m512i) -> __m512i {
    // Bit `4 * odd + 2 * line + other` of the table.
    _mm512_ternarylogic_epi64::<0b1111_0110>(odd, line, other)
}

/// `rest`, and the bytes of the line that are moved. (As a permutation under a mask the compiler
/// makes two instructions of it too, and a third for the mask.)
#[target_feature(enable = "avx512f,avx512vbmi")]
fn or_moved(rest: __m512i, line: __m512i, places: __m512i, moved: __m512i) -> __m512i {
    // Bit `4 * rest + 2 * line + moved` of the table.
    _mm512_ternarylogic_epi64::<0b1111_1000>(rest, _mm512_permutexvar_epi8(places, line), moved)
}

/// The sum of what the two frames have in the 32 bits at this place.
#[target_feature(enable = "avx512f")]
fn sum(bytes: __m512i, at: usize) -> u64 {
    let lanes = 1 << (at / 4) | 1 << (at / 4 + WINDOW / 4);
    u64::from(_mm512_mask_reduce_add_epi32(lanes, bytes).cast_unsigned())
}

#[target_feature(enable = "avx512f")]
fn words_of([a, b, c, d]: Words) -> __m256i {
    let signed = u64::cast_signed;
    _mm256_setr_epi64x(signed(a), signed(b), signed(c), signed(d))
}

#[target_feature(enable = "avx512f")]
fn pair(a: __m256i, b: __m256i) -> __m512i {
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(a), b)
}

#[target_feature(enable = "avx512f")]
fn twice(words: Words) -> __m512i {
    _mm512_broadcast_i64x4(words_of(words))
}

#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8; 2 * WINDOW]) -> __m512i {
    // SAFETY: as many bytes as the register holds.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// # Safety
/// [`WINDOW`] bytes can be read at each.
#[target_feature(enable = "avx512f")]
unsafe fn load_pair(a: *const u8, b: *const u8) -> __m512i {
    // SAFETY: by the caller's promise.
    let [a, b] = [a, b].map(|at| unsafe { _mm256_loadu_si256(at.cast()) });
    pair(a, b)
}

/// # Safety
/// [`WINDOW`] bytes can be written at each.
#[target_feature(enable = "avx512f")]
unsafe fn store_pair(value: __m512i, a: NonNull<u8>, b: NonNull<u8>) {
    // SAFETY: by the caller's promise.
    unsafe {
        _mm256_storeu_si256(a.as_ptr().cast(), _mm512_castsi512_si256(value));
        _mm256_storeu_si256(b.as_ptr().cast(), _mm512_extracti64x4_epi64::<1>(value));
    }
}
