//! State of each receive buffer of the farm, against which feedback is checked.

use crate::message::NO_MEP;
use crate::topology::Descriptor;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not registered, or its node was excluded.
    Unknown,
    Free,
    Assigned {
        mep: u64,
    },
}

#[derive(Clone, Copy, Debug)]
struct Buffer {
    generation: u32,
    state: State,
    /// Its MEP was decided by another node and is forgotten: the node is to release the buffer.
    abandoned: bool,
}

/// What a feedback message means for its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Release {
    /// The buffer is new.
    Registered,
    /// Its MEP is finished.
    Finished(u64),
    /// It was free before: the message was repeated.
    Repeated,
    /// It has been assigned again since.
    Stale,
    /// The message names an event that the buffer was not assigned.
    Foreign,
}

/// The receive buffers by descriptor.
#[derive(Debug)]
pub(super) struct Buffers(Box<[Buffer]>);

impl Buffers {
    pub(super) fn new(descriptors: usize) -> Self {
        let unknown = Buffer {
            generation: 0,
            state: State::Unknown,
            abandoned: false,
        };
        Self(vec![unknown; descriptors].into())
    }

    /// Takes a feedback message.
    pub(super) fn release(&mut self, at: Descriptor, generation: u32, mep: u64) -> Release {
        let Some(buffer) = self.0.get_mut(at.index()) else {
            return Release::Foreign;
        };
        let newer = generation.wrapping_sub(buffer.generation) as i32;
        let release = match buffer.state {
            // The scheduler or the node may have been restarted.
            State::Unknown => Release::Registered,
            _ if newer < 0 => Release::Stale,
            State::Free if newer == 0 => Release::Repeated,
            State::Assigned { mep: assigned }
                if newer == 0 && (mep == assigned || (buffer.abandoned && mep == NO_MEP)) =>
            {
                Release::Finished(assigned)
            }
            State::Free | State::Assigned { .. } => Release::Foreign,
        };
        if release == Release::Registered && newer > 0 {
            buffer.generation = generation;
        }
        if matches!(release, Release::Registered | Release::Finished(_)) {
            buffer.state = State::Free;
            buffer.abandoned = false;
        }
        release
    }

    /// Assigns a free buffer, and returns its generation.
    pub(super) fn assign(&mut self, at: Descriptor, mep: u64) -> u32 {
        self.0.get_mut(at.index()).map_or(0, |buffer| {
            buffer.state = State::Assigned { mep };
            buffer.abandoned = false;
            buffer.generation = buffer.generation.wrapping_add(1);
            buffer.generation
        })
    }

    /// The last assignment of a buffer that has not registered since its node was excluded, or since
    /// its MEP was decided by another one.
    pub(super) fn withdrawn(&self, at: Descriptor) -> Option<u32> {
        let buffer = self.0.get(at.index())?;
        let is_lost = buffer.state == State::Unknown && buffer.generation > 0 || buffer.abandoned;
        is_lost.then_some(buffer.generation)
    }

    /// The MEP of an assignment is decided and forgotten. Where its node has not released the buffer,
    /// another one had the MEP too, and the node waits for fragments that no feeder has any more.
    pub(super) fn abandon(&mut self, at: Descriptor, generation: u32, mep: u64) {
        if let Some(buffer) = self.0.get_mut(at.index()) {
            let is_its = buffer.state == (State::Assigned { mep });
            buffer.abandoned |= is_its && buffer.generation == generation;
        }
    }

    /// The node of the buffer is excluded.
    pub(super) fn forget(&mut self, at: Descriptor) {
        if let Some(buffer) = self.0.get_mut(at.index()) {
            buffer.abandoned = false;
            buffer.state = State::Unknown;
        }
    }
}
