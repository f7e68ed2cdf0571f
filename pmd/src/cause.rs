//! Drop causes: name and text of each, from this crate and from other crates.
//!
//! The causes of ports and streams are constants ([`Cause::NoMbuf`]). A driver or a stage with a
//! drop cause of its own declares it once, at construction:
//!
//! ```
//! use pollux_pmd::{Cause, Tally};
//!
//! let stale = Cause::declare("stale-header", "a header for another geometry")?;
//! let mut tally = Tally::new();
//! tally.count_dropped(stale, 2);
//! assert_eq!(tally.view().balance().dropped_for(stale), 2);
//! assert!(Cause::all().any(|cause| cause.name() == "stale-header"));
//! # Ok::<(), pollux_pmd::CauseError>(())
//! ```
//!
//! Reports, metrics and recordings list all causes; a declaration is the only registration that is
//! needed.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Why a frame was lost. Causes are ordered as in [`Cause::all`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cause(
    /// Its index, and one: so no result or option of a cause takes more bytes than the cause.
    NonZeroUsize,
);

macro_rules! causes {
    ($($constant:ident $name:literal $text:literal,)*) => {
        // Numbers the causes.
        #[derive(Clone, Copy)]
        enum Number { $($constant,)* }

        #[expect(non_upper_case_globals, reason = "as variants of an enumeration with open end")]
        impl Cause {
            $(#[doc = $text] pub const $constant: Cause = Cause::at(Number::$constant as usize);)*
        }

        /// Names and texts of the constants.
        const CONSTANT: &[(&str, &str)] = &[$(($name, $text),)*];
    };
}

causes! {
    NoMbuf "no-mbuf" "the pool had no free buffer",
    RingFull "ring-full" "the receive ring was full",
    KernelDrop "kernel-drop" "the kernel had no room in the socket's ring",
    Oversize "oversize" "longer than a receive slot, the longest chain or the longest datagram",
    Malformed "malformed" "headers or payload contradict their lengths",
    IpFragment "ip-fragment" "a fragment of an IP datagram, which is not reassembled",
    ReassemblyTimeout "reassembly-timeout" "a fragment of an IP datagram, the rest of which did not come in time",
    ReassemblyOverlap "reassembly-overlap" "a fragment of an IP datagram whose fragments contradict each other",
    ReassemblyFull "reassembly-full" "a fragment of an IP datagram for which there was no room to reassemble it",
    BadChecksum "bad-checksum" "an IPv4, UDP or ICMP checksum is wrong",
    NotForUs "not-for-us" "another protocol, or another host's address",
    DemuxMiss "demux-miss" "UDP, but no stream is configured for the destination",
    BadVersion "bad-version" "a payload of an unknown format or version",
    Unsupported "unsupported" "well formed, but a kind that is not handled",
    OutOfWindow "out-of-window" "its time stamp is too far ahead of the events being built",
    ClockSkew "clock-skew" "its time stamps differ from those of most sources",
    NoRoom "no-room" "its source had as many events waiting for the others as it may",
    Misrouted "misrouted" "a configured board, on the port of another",
    Late "late" "came when its events had been closed",
    Duplicate "duplicate" "a sequence number or a fragment that had already come",
    DeviceError "device-error" "the device reported or made an error",
    TxFull "tx-full" "the transmit queue had no room, and was waited for long enough",
    Impaired "impaired" "lost on purpose",
    Aborted "aborted" "still queued when the run was stopped",
}

/// Maximum number of causes in a process: those of this crate and declared ones. Every tally has a
/// counter for each.
pub const CAUSES: usize = 64;

/// Maximum number of declared causes.
const OPEN: usize = CAUSES - CONSTANT.len();

/// Names and texts of the declared causes, without gaps.
static DECLARED: [OnceLock<(&str, &str)>; OPEN] = [const { OnceLock::new() }; OPEN];

/// Locked while a cause is declared.
static DECLARING: Mutex<()> = Mutex::new(());

/// Why a cause could not be declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CauseError {
    /// The name is invalid; reports and metrics print it unchanged.
    #[error("drop cause `{0}`: a name has lower-case letters, digits and hyphens")]
    Name(&'static str),
    /// Another cause has the name.
    #[error("drop cause `{0}` is declared twice, with different texts: choose another name")]
    Twice(&'static str),
    /// The process has the maximum number of causes.
    #[error("drop cause `{0}` is one too many: a process can have {CAUSES}")]
    TooMany(&'static str),
}

impl Cause {
    /// Declares a cause. `name` appears in reports and metrics, in lower-case letters, digits and
    /// hyphens; `text` describes in a few words what happened. Repeated declarations of the same
    /// name and text return the same cause.
    ///
    /// # Errors
    /// An invalid name, a name of another cause, or more than [`CAUSES`] causes.
    pub fn declare(name: &'static str, text: &'static str) -> Result<Self, CauseError> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let plain = name.bytes().all(|byte| is_plain(byte) || byte == b'-');
        if !plain || !name.as_bytes().first().is_some_and(u8::is_ascii_lowercase) {
            return Err(CauseError::Name(name));
        }
        let _declaring = DECLARING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = Self::all().find(|cause| cause.name() == name) {
            return if known.text() == text {
                Ok(known)
            } else {
                Err(CauseError::Twice(name))
            };
        }
        // The first free slot; the lock prevents concurrent allocation.
        let free = DECLARED
            .iter()
            .position(|own| own.set((name, text)).is_ok());
        free.map(|place| Self::at(CONSTANT.len() + place))
            .ok_or(CauseError::TooMany(name))
    }

    /// All causes: those of this crate, then the declared ones in the order of declaration.
    pub fn all() -> impl Iterator<Item = Cause> {
        let declared = DECLARED.iter().take_while(|own| own.get().is_some());
        let count = CONSTANT.len() + declared.count();
        (0..count).map(Cause::at)
    }

    /// Index of the cause, below [`CAUSES`].
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self.0.get() - 1
    }

    /// The cause with an index.
    const fn at(index: usize) -> Self {
        Self(NonZeroUsize::MIN.saturating_add(index))
    }

    fn entry(self) -> (&'static str, &'static str) {
        let own = || DECLARED.get(self.index() - CONSTANT.len())?.get();
        let constant = CONSTANT.get(self.index());
        // Every cause is either a constant or declared.
        constant.or_else(own).copied().unwrap_or_default()
    }

    /// Name in reports and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().0
    }

    /// Short description of what happened.
    #[must_use]
    pub fn text(self) -> &'static str {
        self.entry().1
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_kebab_case() {
        let mut names: Vec<_> = CONSTANT.iter().map(|(name, _)| *name).collect();
        assert!(
            names
                .iter()
                .all(|n| n.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'))
        );
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CONSTANT.len());
        assert_eq!(Cause::Aborted.index() + 1, CONSTANT.len());
        assert_eq!(Cause::RingFull.name(), "ring-full");
    }

    #[test]
    fn a_cause_is_declared_once() {
        let own = Cause::declare("own", "for a reason of its own");
        assert_eq!(own, Cause::declare("own", "for a reason of its own"));
        let Ok(own) = own else {
            unreachable!("{own:?}")
        };
        assert_eq!((own.name(), own.text()), ("own", "for a reason of its own"));
        assert!(Cause::all().filter(|&cause| cause == own).count() == 1 && own > Cause::Aborted);
        assert_eq!(
            Cause::declare("own", "another"),
            Err(CauseError::Twice("own"))
        );
        assert_eq!(
            Cause::declare("late", "another"),
            Err(CauseError::Twice("late"))
        );
        let late = Cause::declare("late", Cause::Late.text());
        assert_eq!(late, Ok(Cause::Late));
        for name in ["", "Own", "own cause", "-own", "0"] {
            assert_eq!(Cause::declare(name, "text"), Err(CauseError::Name(name)));
        }
    }

    /// Threads that declare the same causes concurrently get the same values.
    #[test]
    fn threads_agree() {
        const NAMES: [&str; 4] = ["thread-a", "thread-b", "thread-c", "thread-d"];
        let declare = |first: usize| {
            let names = (0..NAMES.len()).map(move |n| NAMES[(first + n) % NAMES.len()]);
            let mut causes: Vec<_> = names.map(|name| Cause::declare(name, name)).collect();
            causes.rotate_right(first);
            causes
        };
        let all: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|n| scope.spawn(move || declare(n))).collect();
            threads
                .into_iter()
                .map(std::thread::ScopedJoinHandle::join)
                .collect()
        });
        for causes in &all {
            assert!(
                causes
                    .as_ref()
                    .is_ok_and(|causes| causes.iter().all(Result::is_ok))
            );
            assert_eq!(causes.as_ref().ok(), all[0].as_ref().ok());
        }
    }
}
