//! What programs say to whoever has started them.

use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, Write};

use anyhow::Context as _;

/// Writes to standard output, and returns whether anybody reads on. A reader that has gone
/// (`| head`) has seen what it wanted: that is no failure. `print!` would panic.
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

/// Says a line on standard error, if anybody listens there: a run goes on without.
pub fn say(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}
