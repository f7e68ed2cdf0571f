//! User messages: text on standard output, lines on standard error.

use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, Write};

use anyhow::Context as _;

/// Writes to standard output, and returns whether the reader is still there. A reader that closed
/// the pipe (`| head`) is no failure; `print!` would panic.
///
/// # Errors
/// A disk that is full, say.
pub fn print_with(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<bool> {
    let mut out = BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        written => written
            .map(|()| true)
            .context("cannot write to standard output"),
    }
}

/// Writes a text to standard output, as [`print_with`].
///
/// # Errors
/// As there.
pub fn print(text: impl Display) -> anyhow::Result<()> {
    print_with(|out| write!(out, "{text}")).map(drop)
}

/// Writes a line to standard error. Errors are ignored: a closed standard error does not end a run.
pub fn user_message(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}
