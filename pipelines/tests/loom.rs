//! Models of the frame buffers: run with `RUSTFLAGS="--cfg loom" cargo test --test loom`.
#![cfg(loom)]
#![allow(clippy::unwrap_used)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

#[path = "../src/assemble/turns.rs"]
#[allow(dead_code)]
mod turns;

#[path = "../src/assemble/spares.rs"]
mod spares;

use spares::Spares;
use turns::{Entry, Turns, mutant};

const PARTS: usize = 2;

/// A buffer of two parts, with two pieces of memory. Loom watches each part: it reports two accesses at
/// once.
struct Buffer {
    turns: Turns,
    parts: [[UnsafeCell<u64>; PARTS]; 2],
    /// With other memory, before the frame is read; else with its own afterwards.
    refills_at_once: bool,
}

// SAFETY: loom checks the accesses to the cells.
unsafe impl Sync for Buffer {}
// SAFETY: as above.
unsafe impl Send for Buffer {}

impl Buffer {
    /// Places a part of the frame of this lap; whether it was this caller's to place.
    fn place(&self, lap: u64, part: usize) -> bool {
        match self.turns.enter(0, lap) {
            Entry::Opened | Entry::Joined => {}
            _ => return false,
        }
        let memory = self.turns.memory(0);
        let claimed = self.turns.claim(memory, part);
        if claimed {
            // SAFETY: loom checks that no other access runs at the same time.
            self.parts[memory][part].with_mut(|cell| unsafe { *cell = lap + 1 });
        }
        self.turns.leave(0, claimed);
        claimed
    }

    /// Takes the buffer, if it can be had, reads the parts that are there, and gives it back.
    fn read(&self, lap: u64) -> Option<usize> {
        let (parts, memory) = self.turns.take(0)?;
        if self.refills_at_once {
            self.turns.refill(0, 1 - memory);
        }
        let claimed = (0..PARTS).filter(|&part| self.turns.is_claimed(memory, part));
        let claimed: Vec<_> = claimed.collect();
        assert_eq!(claimed.len(), parts);
        for part in claimed {
            // SAFETY: loom checks that no write runs at the same time.
            let value = self.parts[memory][part].with(|cell| unsafe { *cell });
            assert_eq!(value, lap + 1);
        }
        self.turns.clear(memory);
        if !self.refills_at_once {
            self.turns.refill(0, memory);
        }
        Some(parts)
    }
}

/// Two loops place both parts, one of them also a part of the next frame; the reader closes the
/// frame when its time is over, whatever is there, and reads it.
fn model(refills_at_once: bool) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let buffer = Arc::new(Buffer {
            turns: Turns::new(1, 2, PARTS),
            parts: [0, 0].map(|_| [UnsafeCell::new(0), UnsafeCell::new(0)]),
            refills_at_once,
        });
        let other = Arc::clone(&buffer);
        let first = thread::spawn(move || {
            let placed = usize::from(other.place(0, 0)) + usize::from(other.place(0, 1));
            (placed, other.place(1, 0))
        });
        let other = Arc::clone(&buffer);
        let second = thread::spawn(move || usize::from(other.place(0, 1)));
        // Else loom tries only orders in which this comes before all else.
        thread::yield_now();
        let mut read = buffer.read(0);
        if read.is_none() {
            buffer.turns.close(0, 0);
            read = buffer.read(0);
        }
        let (placed, next) = first.join().unwrap();
        let placed = placed + second.join().unwrap();
        if next {
            // The buffer was free for it, so the frame before had been taken.
            assert!(read.is_some());
            buffer.turns.close(0, 1);
            assert_eq!(buffer.read(1), Some(1));
        } else if read.is_none() {
            // A writer was still there, or no writer had come yet.
            buffer.turns.close(0, 0);
            read = buffer.read(0);
        }
        // What was placed is what was read: no part twice, and none behind the reader's back.
        assert_eq!(read.unwrap_or(0), placed);
    });
}

#[test]
fn a_part_is_written_once_and_read_by_the_reader_alone() {
    mutant::set("");
    model(true);
    model(false);
    for (site, refills_at_once) in [
        ("enter", false),
        ("leave", false),
        ("take", false),
        ("refill", false),
        ("enter", true),
        ("refill", true),
    ] {
        mutant::set(site);
        let run = AssertUnwindSafe(|| model(refills_at_once));
        let failed = catch_unwind(run).is_err();
        assert!(failed, "{site}: the model passes with a relaxed ordering");
        println!("mutant {site}, refilled at once {refills_at_once}: found");
    }
    mutant::set("");
}

/// Memory is given back by two threads while a buffer begins to wait for it: the buffer is refilled once,
/// and what is left is spare.
#[test]
fn a_buffer_that_waits_is_refilled() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let refilled = Arc::new(loom::sync::Mutex::new(Vec::new()));
        let refill = |to: &Arc<loom::sync::Mutex<Vec<_>>>| {
            let to = Arc::clone(to);
            move |buffer, memory| to.lock().unwrap().push((buffer, memory))
        };
        // One spare piece, which the buffer gets for its first frame.
        let spares = Arc::new(Spares::new(1, 2));
        spares.refill_or_wait(0, refill(&refilled));
        assert_eq!(refilled.lock().unwrap().pop(), Some((0, 1)));
        let (other, to) = (Arc::clone(&spares), refill(&refilled));
        let first = thread::spawn(move || other.give(0, 0, to));
        let (other, to) = (Arc::clone(&spares), refill(&refilled));
        let second = thread::spawn(move || other.give(0, 1, to));
        spares.refill_or_wait(0, refill(&refilled));
        first.join().unwrap();
        second.join().unwrap();
        let one = refilled.lock().unwrap().clone();
        assert_eq!(one.len(), 1);
        spares.refill_or_wait(0, refill(&refilled));
        let two = refilled.lock().unwrap().clone();
        assert!(two.len() == 2 && two[0].1 != two[1].1, "{two:?}");
    });
}
