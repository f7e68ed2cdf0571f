//! Properties of this process, from /proc/self.

use crate::{Sys, Unread, malformed};

// linux/capability.h
/// Configures interfaces.
pub const CAP_NET_ADMIN: u32 = 12;
/// Opens packet sockets.
pub const CAP_NET_RAW: u32 = 13;
/// Locks memory.
pub const CAP_IPC_LOCK: u32 = 14;
/// Does most of what root may.
pub const CAP_SYS_ADMIN: u32 = 21;
/// Loads BPF programs.
pub const CAP_BPF: u32 = 39;

/// Capabilities that ports need, by the names of capabilities(7).
pub const CAPABILITIES: [(&str, u32); 5] = [
    ("CAP_NET_ADMIN", CAP_NET_ADMIN),
    ("CAP_NET_RAW", CAP_NET_RAW),
    ("CAP_IPC_LOCK", CAP_IPC_LOCK),
    ("CAP_SYS_ADMIN", CAP_SYS_ADMIN),
    ("CAP_BPF", CAP_BPF),
];

/// Whether a set contains a capability, or one that includes it.
#[must_use]
pub fn has(set: u64, capability: u32) -> bool {
    // CAP_SYS_ADMIN includes CAP_BPF, as before Linux 5.8.
    let other = if capability == CAP_BPF {
        CAP_SYS_ADMIN
    } else {
        capability
    };
    set & (1 << capability | 1 << other) != 0
}

/// The value of a line `name: value` of /proc/self/status.
///
/// # Errors
/// The file cannot be read, or has no such line.
pub fn status(sys: &Sys, name: &str) -> Result<String, Unread> {
    const PATH: &str = "/proc/self/status";
    let text = sys.text(PATH)?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let value = value.ok_or_else(|| Unread::Missing(format!("line `{name}` in {PATH}")))?;
    Ok(value.trim().to_owned())
}

/// The set of effective capabilities, by bit.
///
/// # Errors
/// As of [`status`], and a value that is no number.
pub fn capabilities(sys: &Sys) -> Result<u64, Unread> {
    let text = status(sys, "CapEff")?;
    u64::from_str_radix(&text, 16).map_err(|_| malformed("CapEff in /proc/self/status", &text))
}
