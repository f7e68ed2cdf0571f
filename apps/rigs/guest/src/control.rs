//! The line to the host: the machine's second serial port. One request a line; what the monitor
//! of the machine is to do is answered by a line, `ok` or why not.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use serde_json::{Value, json};

const LINE: &str = "/dev/ttyS1";

/// What became of a test.
#[derive(Serialize)]
pub(crate) struct Row<'a> {
    pub(crate) test: &'a str,
    /// `pass`, `fail` or `skipped`.
    pub(crate) result: &'static str,
    pub(crate) why: &'a str,
    pub(crate) seconds: f64,
}

/// What a program has forwarded.
#[derive(Serialize)]
pub(crate) struct Figure {
    side: &'static str,
    frames: u64,
    seconds: f64,
}

impl Figure {
    pub(crate) fn new(side: &'static str, frames: u64, seconds: f64) -> Self {
        Self {
            side,
            frames,
            seconds,
        }
    }
}

pub(crate) struct Control(File);

impl Control {
    pub(crate) fn open() -> Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(LINE);
        Ok(Self(file.with_context(|| format!("cannot open {LINE}"))?))
    }

    fn say(&mut self, word: &str, value: &impl Serialize) -> Result<()> {
        let line = format!("{word} {}\n", serde_json::to_string(value)?);
        self.0
            .write_all(line.as_bytes())
            .context("cannot write to the host")
    }

    /// A test begins.
    pub(crate) fn begin(&mut self, test: &str) -> Result<()> {
        self.say("test", &test)
    }

    /// A test has ended.
    pub(crate) fn report(&mut self, row: &Row) -> Result<()> {
        self.say("row", row)
    }

    /// A measurement has ended.
    pub(crate) fn figure(&mut self, figure: &Figure) -> Result<()> {
        self.say("figure", figure)
    }

    /// All tests have ended.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.say("end", &Value::Null)
    }

    /// Has QEMU's monitor do something, and waits until it is done.
    pub(crate) fn monitor(&mut self, command: &str, arguments: &Value) -> Result<()> {
        self.say("qmp", &json!({"execute": command, "arguments": arguments}))?;
        let mut answer = String::new();
        BufReader::new(&self.0).read_line(&mut answer)?;
        match answer.trim() {
            "ok" => Ok(()),
            said => bail!("{command}: {said}"),
        }
    }

    /// Plugs or pulls the cable of a NIC: `a` or `b`.
    pub(crate) fn set_link(&mut self, nic: &str, up: bool) -> Result<()> {
        self.monitor("set_link", &json!({"name": nic, "up": up}))
    }
}
