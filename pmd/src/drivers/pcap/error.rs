//! Errors of capture files.

use std::io;

/// Error: a capture cannot be read, from the start or from some point on.
#[derive(Debug, thiserror::Error)]
pub(super) enum CaptureError {
    #[error("cannot be read at byte {at}: {source}")]
    Io { at: u64, source: io::Error },
    #[error(
        "is not a capture: it does not start with the magic number of pcap or pcapng, plain or \
         compressed by gzip or zstd"
    )]
    NotACapture,
    #[error(
        "is truncated: its {packing} data end too early, {at} bytes into the capture; frames \
         before that can be used"
    )]
    CutOff { packing: &'static str, at: u64 },
    #[error(
        "is damaged: its {packing} data cannot be unpacked {at} bytes into the capture: {source}; \
         what follows cannot be read"
    )]
    Unpack {
        packing: &'static str,
        at: u64,
        source: io::Error,
    },
    #[error("is a capture of version {0}.{1}, which is not supported; convert it with editcap")]
    Version(u16, u16),
    #[error("is truncated: it ends inside the record at byte {0}; frames before it can be used")]
    Truncated(u64),
    #[error("is damaged at byte {at}: {what}; what follows cannot be read")]
    Damaged { at: u64, what: &'static str },
}
