//! Random bits of the kernel, for keys and numbers that a stranger must not guess.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// 32 random bits. Enters the kernel.
///
/// # Errors
/// The kernel has none.
pub(crate) fn bits() -> io::Result<u32> {
    let mut bytes = [0; 4];
    let mut filled = 0;
    while filled < bytes.len() {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(more) => filled += more,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(u32::from_ne_bytes(bytes))
}
