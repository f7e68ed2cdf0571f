//! The registers that tests access, and the values that they observe: `scripts/cosim` compares them
//! with the register map.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use pollux_card_model::{Block, Register};

/// A folder where each test writes the registers that its [`Rig`](crate::rig::Rig)s have accessed, if
/// it is set: `POLLUX_REGISTERS=folder`. Of each register there is a line in the test's file: kind of
/// the block, offset in it, all bits that were read as 1, and all that were written as 1.
const REGISTERS: &str = "POLLUX_REGISTERS";

/// Of one rig.
#[derive(Default)]
pub(crate) struct Touched(RefCell<BTreeMap<(u32, usize), [u32; 2]>>);

impl Touched {
    pub(crate) fn read(&self, block: &Block, register: Register, value: u32) {
        self.add(block, register, [value, 0]);
    }

    pub(crate) fn written(&self, block: &Block, register: Register, value: u32) {
        self.add(block, register, [0, value]);
    }

    fn add(&self, block: &Block, register: Register, bits: [u32; 2]) {
        let mut all = self.0.borrow_mut();
        let seen = all.entry((block.kind, register.at)).or_default();
        for (seen, bits) in seen.iter_mut().zip(bits) {
            *seen |= bits;
        }
    }

    /// Adds them to the file of this thread's test.
    fn write(&self, folder: &Path) -> io::Result<()> {
        let thread = std::thread::current();
        let Some(test) = thread.name() else {
            return Ok(());
        };
        let file = folder.join(test);
        let mut file = OpenOptions::new().create(true).append(true).open(file)?;
        for ((kind, at), [read, written]) in self.0.borrow().iter() {
            writeln!(file, "{kind} {at:#x} {read:#x} {written:#x}")?;
        }
        Ok(())
    }
}

impl Drop for Touched {
    fn drop(&mut self) {
        let Some(folder) = std::env::var_os(REGISTERS) else {
            return;
        };
        if let Err(error) = self.write(Path::new(&folder)) {
            eprintln!("{REGISTERS}: {error}");
        }
    }
}
