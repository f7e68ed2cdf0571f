//! Text for C: copied into the caller's memory, always with a NUL at the end.

use std::ffi::{CStr, c_char};

/// Copies as much of a text as fits, and a NUL; returns the bytes of the whole text.
///
/// # Safety
/// `out` is NULL, or `room` bytes there can be written.
pub(crate) unsafe fn copy(text: &str, out: *mut c_char, room: usize) -> usize {
    let fits = text.len().min(room.saturating_sub(1));
    if !out.is_null() && room > 0 {
        // SAFETY: fits + 1 <= room bytes can be written, and the text is memory of this library.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr().cast(), out, fits);
            out.add(fits).write(0);
        }
    }
    text.len()
}

/// A text of C; `None` if it is NULL or not UTF-8.
///
/// # Safety
/// `text` is NULL or ends with a NUL, and does not change while the result is in use.
pub(crate) unsafe fn read<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: by the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}
