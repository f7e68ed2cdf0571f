//! The messages, and their lines (docs/formats/images-control.md).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Shape;
use crate::transfer::{TransferConfig, TransferCounts};

/// Version of the protocol.
pub const VERSION: u32 = 1;

/// Longest line of a message, in bytes: 64 receivers with a few regions each.
pub const MAX_LINE: usize = 65_536;

/// A request of the manager.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// What the node is.
    Capabilities,
    /// Configures a run and opens its resources.
    Arm(Arm),
    /// Starts the armed run.
    Start,
    /// Ends the run in order.
    Stop,
    /// Suspends the run; frames that have begun are completed.
    Pause,
    /// Ends a pause.
    Resume,
    /// State and counts.
    Status,
}

/// Configuration of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    /// Of a source: what it sends.
    Source(SourceRun),
    /// Of a receiver: its transfers.
    Transfers(Vec<TransferConfig>),
}

/// What a source sends in a run. What is left out is as the node was configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceRun {
    /// Number of frames; 0: until it is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<u64>,
    /// Frames a second; 0: as many as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_hz: Option<f64>,
}

/// A line of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// The answer to a request. Those of a connection are in the order of its requests.
    Reply(Reply),
    /// What happened in the run, to all clients.
    Event(Event),
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// The request was carried out; the state after it.
    Done {
        /// The state.
        state: State,
    },
    /// The request was refused, and has changed nothing.
    Error {
        /// The reason.
        text: String,
    },
    /// What the node is.
    Capabilities(Capabilities),
    /// State and counts.
    Status(Status),
}

/// What happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// Data outpace processing: images were lost.
    Overrun {
        /// The receiver; absent if all receivers of the node lost them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        receiver: Option<String>,
        /// Images lost since the last such event.
        images: u64,
    },
    /// There are buffers again after an overrun.
    Room {
        /// The receiver, as in the overrun.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        receiver: Option<String>,
    },
    /// The run has failed and is over.
    Error {
        /// The reason.
        text: String,
    },
    /// The run is over.
    Finished {
        /// Counts of the whole run.
        counts: Counts,
    },
}

/// Part of a node in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A detector, which sends images.
    Source,
    /// A receiver of images.
    Receiver,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Source => "source",
            Self::Receiver => "receiver",
        })
    }
}

/// What a node is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Its part in a run.
    pub role: Role,
    /// Name and version of its program.
    pub program: String,
    /// Shape of the images that it sends or receives.
    pub shape: Shape,
    /// Of a source: its highest rate in frames a second, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rate_hz: Option<f64>,
    /// Of a receiver: bytes of a pixel in its transfers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pixel_bytes: Option<usize>,
    /// Of a receiver: bytes of memory for all buffers of its transfers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

impl Capabilities {
    /// A node without limits.
    #[must_use]
    pub fn new(role: Role, program: impl Into<String>, shape: Shape) -> Self {
        Self {
            role,
            program: program.into(),
            shape,
            max_rate_hz: None,
            pixel_bytes: None,
            memory_bytes: None,
        }
    }
}

/// State of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Without a run.
    #[default]
    Idle,
    /// Resources of a run are being opened.
    Arming,
    /// The run can be started: a receiver takes images from here on.
    Armed,
    /// The run is going on.
    Running,
    /// The run is suspended.
    Paused,
    /// The run is being ended.
    Stopping,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "idle",
            Self::Arming => "arming",
            Self::Armed => "armed",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Stopping => "stopping",
        })
    }
}

/// State and counts of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The state.
    pub state: State,
    /// Counts of the run, or of the last one.
    pub counts: Counts,
}

/// Counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Frames that a source sent, or images that a receiver has built.
    pub frames: u64,
    /// Transfers of a receiver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<TransferCounts>,
}

/// A line is no message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The line is too long.
    #[error("a line is longer than {MAX_LINE} bytes")]
    Long,
    /// The message is of another version.
    #[error("version {0} is not supported: {VERSION} is")]
    Version(u32),
    /// The line is no message of this version.
    #[error("this is no {what}: {error}")]
    Json {
        /// What it should be.
        what: &'static str,
        /// The reason.
        error: serde_json::Error,
    },
}

/// The version, whatever else the line has.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestLine {
    version: u32,
    request: Request,
}

#[derive(Serialize, Deserialize)]
struct MessageLine {
    version: u32,
    #[serde(flatten)]
    message: Message,
}

impl Request {
    /// Reads a line. Unknown fields are refused.
    ///
    /// # Errors
    /// A line that is too long, of another version, or no request.
    pub fn parse(line: &[u8]) -> Result<Self, ProtocolError> {
        Ok(parse::<RequestLine>(line, "request")?.request)
    }

    /// The line, with its end.
    #[must_use]
    pub fn line(&self) -> String {
        line(&RequestLine {
            version: VERSION,
            request: self.clone(),
        })
    }
}

impl Message {
    /// Reads a line. Unknown fields are ignored: new ones do not raise the version.
    ///
    /// # Errors
    /// As for [`Request::parse`].
    pub fn parse(line: &[u8]) -> Result<Self, ProtocolError> {
        Ok(parse::<MessageLine>(line, "message of a node")?.message)
    }

    /// The line, with its end.
    #[must_use]
    pub fn line(&self) -> String {
        line(&MessageLine {
            version: VERSION,
            message: self.clone(),
        })
    }
}

fn parse<'a, T: Deserialize<'a>>(line: &'a [u8], what: &'static str) -> Result<T, ProtocolError> {
    if line.len() > MAX_LINE {
        return Err(ProtocolError::Long);
    }
    let wrong = |error| ProtocolError::Json { what, error };
    // First: a message of another version may differ in everything else.
    let Versioned { version } = serde_json::from_slice(line).map_err(wrong)?;
    if version != VERSION {
        return Err(ProtocolError::Version(version));
    }
    serde_json::from_slice(line).map_err(wrong)
}

fn line(message: &impl Serialize) -> String {
    // Messages consist of numbers and text, which JSON can represent.
    serde_json::to_string(message).unwrap_or_default() + "\n"
}
