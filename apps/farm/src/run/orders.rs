//! What the parent of the processes of a run and they tell each other: lines on the standard input and
//! the standard output of each process.

use std::fmt;
use std::io::{BufRead as _, Write};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::counters::{Control, Moment};
use super::figures::Figures;
use super::part::Part;

/// What the parent says, an order a line. At the end of its standard input a process stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// No more triggers.
    Enough,
    /// All events are decided.
    Done,
    /// For the scheduler: it cannot hear so many members, whose processes have no ports.
    Absent(u64),
    /// End, with the last answer.
    Stop,
}

impl Order {
    fn read(line: &str) -> Option<Self> {
        match line.split_once(' ') {
            Some(("absent", members)) => members.parse().ok().map(Self::Absent),
            Some(_) => None,
            None => [Self::Enough, Self::Done, Self::Stop]
                .into_iter()
                .find(|order| order.to_string() == line),
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enough => f.write_str("enough"),
            Self::Done => f.write_str("done"),
            Self::Absent(members) => write!(f, "absent {members}"),
            Self::Stop => f.write_str("stop"),
        }
    }
}

/// What a process says, as JSON.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// How it goes.
    State(State),
    /// Its ports and its latency.
    Figures(Figures),
    /// What it contributes to the report: its last line.
    Part(Box<Part>),
}

/// State of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub counts: Moment,
    /// Its scheduler has no more events.
    pub done: bool,
    /// Frames that its ports sent and received.
    pub sent: u64,
    pub taken: u64,
}

/// Writes an answer.
///
/// # Errors
/// A parent that is gone.
pub fn answer(answer: &Answer) -> Result<()> {
    let line = serde_json::to_string(answer).context("cannot write a line to the parent")?;
    let mut out = std::io::stdout().lock();
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    written.context("cannot write a line to the parent")
}

/// Obeys the lines of standard input on a thread of its own.
///
/// # Errors
/// A thread that cannot be started.
pub fn obey(control: &Arc<Control>) -> Result<()> {
    let control = Arc::clone(control);
    let body = move || {
        for line in std::io::stdin().lock().lines() {
            match line.as_deref().map(Order::read) {
                Ok(Some(Order::Enough)) => control.enough.stop(),
                Ok(Some(Order::Done)) => control.done.stop(),
                Ok(Some(Order::Absent(members))) => control.absent.set(members),
                Ok(Some(Order::Stop)) | Err(_) => break,
                Ok(None) => tracing::warn!("a line of the parent is no order"),
            }
        }
        control.stop.stop();
    };
    let thread = std::thread::Builder::new().name("orders".into());
    thread.spawn(body).context("cannot start a thread")?;
    Ok(())
}
