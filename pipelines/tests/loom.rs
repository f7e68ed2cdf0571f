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

use turns::{Entry, Turns, mutant};

const PARTS: usize = 2;

/// A buffer of two parts, each of which loom watches: it reports two accesses at once.
struct Buffer {
    turns: Turns,
    parts: [UnsafeCell<u64>; PARTS],
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
        let claimed = self.turns.claim(0, part);
        if claimed {
            // SAFETY: loom checks that no other access runs at the same time.
            self.parts[part].with_mut(|cell| unsafe { *cell = lap + 1 });
        }
        self.turns.leave(0, claimed);
        claimed
    }

    /// Takes the buffer, if it can be had, reads the parts that are there, and gives it back.
    fn read(&self, lap: u64) -> Option<usize> {
        let parts = self.turns.take(0)?;
        let claimed = (0..PARTS).filter(|&part| self.turns.is_claimed(0, part));
        let claimed: Vec<_> = claimed.collect();
        assert_eq!(claimed.len(), parts);
        for part in claimed {
            // SAFETY: loom checks that no write runs at the same time.
            let value = self.parts[part].with(|cell| unsafe { *cell });
            assert_eq!(value, lap + 1);
        }
        self.turns.free(0);
        Some(parts)
    }
}

/// Two loops place both parts, one of them also a part of the next frame; the reader closes the
/// frame when its time is over, whatever is there, and reads it.
fn model() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let buffer = Arc::new(Buffer {
            turns: Turns::new(1, PARTS),
            parts: [UnsafeCell::new(0), UnsafeCell::new(0)],
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
            // The buffer was free for it, so the frame before had been read.
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
    model();
    for site in ["enter", "leave", "take", "free"] {
        mutant::set(site);
        let failed = catch_unwind(AssertUnwindSafe(model)).is_err();
        assert!(failed, "{site}: the model passes with a relaxed ordering");
        println!("mutant {site}: found");
    }
    mutant::set("");
}
