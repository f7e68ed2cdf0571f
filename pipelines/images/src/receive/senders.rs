//! Senders of a detector: which one a packet is of, and whether it is the same as before.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use pollux_pmd::stream::StreamId;

use super::config::{ReceiveError, Route};
use crate::formats::{Header, Layout};

/// An entry of the table that is no sender's.
const UNKNOWN: u16 = u16::MAX;
/// An identity that has not been seen yet.
const NONE: u64 = u64::MAX;
/// Frames of another identity in a row, after which a sender has it: it was replaced, or its first
/// packet was wrong. More than one, since two senders that are taken for one send frames by turns.
const RELEARN: u64 = 4;

/// Why a packet is no sender's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stranger {
    /// No such module, or no such stream.
    Unknown,
    /// Another module has this identifier or this stream.
    Conflict,
}

/// A module and its position as packets name them, and the stream that they came on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleIdentity {
    /// The stream.
    pub stream: StreamId,
    /// Identifier of the module.
    pub module_id: u16,
    /// Row of the module or of its half (SLS header).
    pub row: u16,
    /// Column of it.
    pub column: u16,
}

impl ModuleIdentity {
    fn of(identity: u64) -> Self {
        Self {
            stream: StreamId((identity >> 48) as u16),
            module_id: module_id(identity),
            row: (identity >> 16) as u16,
            column: identity as u16,
        }
    }
}

/// Two senders that are taken for one: packets of the other are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderConflict {
    /// The sender whose packets are placed; none yet if each was refused for the identifier of another
    /// module.
    pub known: Option<ModuleIdentity>,
    /// The last one whose packets were refused.
    pub other: ModuleIdentity,
    /// Packets that were refused.
    pub packets: u64,
}

/// Who sends, readable from any thread.
#[derive(Clone)]
pub struct SenderView(pub(super) Arc<Senders>);

impl SenderView {
    /// The senders that are taken for one with another.
    pub fn conflicts(&self) -> impl Iterator<Item = SenderConflict> + '_ {
        self.0.all.iter().filter_map(|sender| {
            let packets = sender.refused.load(Relaxed);
            let known = sender.identity.load(Relaxed);
            (packets > 0).then(|| SenderConflict {
                known: (known != NONE).then(|| ModuleIdentity::of(known)),
                other: ModuleIdentity::of(sender.other.load(Relaxed)),
                packets,
            })
        })
    }
}

impl fmt::Debug for SenderView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.conflicts()).finish()
    }
}

/// What a sender has in each of its packets. All loops learn it from the first packet.
struct Sender {
    identity: AtomicU64,
    /// Packets of other identities since the last one of this.
    strays: AtomicU64,
    /// Packets of other identities that were refused, and the last of these identities.
    refused: AtomicU64,
    other: AtomicU64,
}

impl Sender {
    fn refuse(&self, identity: u64) -> Stranger {
        self.other.store(identity, Relaxed);
        self.refused.fetch_add(1, Relaxed);
        Stranger::Conflict
    }
}

/// The senders of a detector, shared by all loops.
pub(super) struct Senders {
    layout: Layout,
    by_stream: bool,
    /// Sender by stream, or module by identifier.
    table: Box<[u16]>,
    all: Box<[Sender]>,
}

/// Stream, identifier and position in one word.
fn identity(stream: StreamId, header: &Header) -> u64 {
    u64::from(stream.0) << 48
        | u64::from(header.module_id.get()) << 32
        | u64::from(header.row.get()) << 16
        | u64::from(header.column.get())
}

fn module_id(identity: u64) -> u16 {
    (identity >> 32) as u16
}

impl Senders {
    pub(super) fn new(layout: &Layout, route: &Route) -> Result<Self, ReceiveError> {
        let (what, need, entries): (_, _, Vec<u16>) = match route {
            Route::Streams(streams) => {
                let entries = streams.iter().map(|stream| stream.0);
                ("streams", layout.senders(), entries.collect())
            }
            Route::Modules(ids) => ("module identifiers", layout.modules(), ids.clone()),
        };
        if entries.len() != need {
            let found = entries.len();
            return Err(ReceiveError::Route { what, found, need });
        }
        let len = entries
            .iter()
            .max()
            .map_or(0, |&most| usize::from(most) + 1);
        let mut table = vec![UNKNOWN; len].into_boxed_slice();
        for (n, &entry) in entries.iter().enumerate() {
            let place = &mut table[usize::from(entry)];
            if *place != UNKNOWN {
                return Err(ReceiveError::Twice { what, entry });
            }
            *place = n as u16;
        }
        let senders = (0..layout.senders()).map(|_| Sender {
            identity: AtomicU64::new(NONE),
            strays: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            other: AtomicU64::new(NONE),
        });
        Ok(Self {
            layout: *layout,
            by_stream: matches!(route, Route::Streams(_)),
            table,
            all: senders.collect(),
        })
    }

    /// The sender of a packet.
    #[inline]
    pub(super) fn find(&self, stream: StreamId, header: &Header) -> Result<usize, Stranger> {
        let entry = if self.by_stream {
            stream.0
        } else {
            header.module_id.get()
        };
        let found = self.table.get(usize::from(entry)).copied();
        let Some(found) = found.filter(|&found| found != UNKNOWN).map(usize::from) else {
            return Err(Stranger::Unknown);
        };
        let index = if self.by_stream {
            found
        } else {
            let interfaces = self.layout.interfaces();
            // One or two: no division.
            found * interfaces + (usize::from(header.row.get()) & (interfaces - 1))
        };
        let Some(sender) = self.all.get(index) else {
            return Err(Stranger::Unknown);
        };
        let identity = identity(stream, header);
        if sender.identity.load(Relaxed) != identity {
            return self.meet(index, identity);
        }
        if sender.strays.load(Relaxed) != 0 {
            sender.strays.store(0, Relaxed);
        }
        Ok(index)
    }

    /// A packet of a sender that has not been seen yet, or has another identity.
    #[cold]
    fn meet(&self, index: usize, identity: u64) -> Result<usize, Stranger> {
        let sender = &self.all[index];
        let known = sender.identity.load(SeqCst);
        if known == identity {
            return Ok(index);
        }
        let enough = RELEARN * self.layout.packets() as u64;
        let is_new = known == NONE || sender.strays.fetch_add(1, Relaxed) + 1 >= enough;
        // Another loop may have been faster, with the same identity or another.
        if !is_new || !self.learn(index, known, identity) {
            return Err(sender.refuse(identity));
        }
        sender.strays.store(0, Relaxed);
        Ok(index)
    }

    /// Gives a sender another identity, unless its identifier is another module's. Two loops that
    /// learn the same identifier at the same time both see that of the other, and both give up.
    fn learn(&self, index: usize, known: u64, identity: u64) -> bool {
        let sender = &self.all[index];
        if let Err(other) = sender
            .identity
            .compare_exchange(known, identity, SeqCst, SeqCst)
        {
            return other == identity;
        }
        let module = index / self.layout.interfaces();
        let mut others = self.all.iter().enumerate();
        let conflict = others.any(|(other, sender)| {
            let theirs = sender.identity.load(SeqCst);
            let same_module = other / self.layout.interfaces() == module;
            !same_module && theirs != NONE && module_id(theirs) == module_id(identity)
        });
        if conflict {
            let _ = sender
                .identity
                .compare_exchange(identity, known, SeqCst, SeqCst);
        }
        !conflict
    }

    /// Forgets what was learned, for a new run.
    pub(super) fn forget(&self) {
        for sender in &self.all {
            sender.identity.store(NONE, SeqCst);
            sender.strays.store(0, Relaxed);
        }
    }
}
