//! Kernel ABI that libc lacks: linux/bpf.h, linux/if_link.h, linux/if_xdp.h, linux/ethtool.h.

/// bpf(2) commands.
pub(super) const BPF_MAP_CREATE: libc::c_int = 0;
pub(super) const BPF_MAP_LOOKUP_ELEM: libc::c_int = 1;
pub(super) const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
pub(super) const BPF_MAP_DELETE_ELEM: libc::c_int = 3;
pub(super) const BPF_PROG_LOAD: libc::c_int = 5;
#[cfg(test)]
pub(super) const BPF_PROG_TEST_RUN: libc::c_int = 10;
pub(super) const BPF_LINK_CREATE: libc::c_int = 28;
pub(super) const BPF_LINK_DETACH: libc::c_int = 34;

pub(super) const BPF_MAP_TYPE_ARRAY: u32 = 2;
pub(super) const BPF_MAP_TYPE_XSKMAP: u32 = 17;
pub(super) const BPF_PROG_TYPE_XDP: u32 = 6;
/// Attach type of a link.
pub(super) const BPF_XDP: u32 = 37;
/// The program accepts frames in several fragments (Linux 5.18).
pub(super) const BPF_F_XDP_HAS_FRAGS: u32 = 1 << 5;

pub(super) const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
pub(super) const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

/// Verdicts of an XDP program.
pub(super) const XDP_DROP: i32 = 1;
pub(super) const XDP_PASS: i32 = 2;

/// Headroom that the kernel keeps in each chunk in front of a received frame.
pub(super) const XDP_PACKET_HEADROOM: usize = 256;
/// Maximum number of frames that one system call sends in copy mode (Linux 6.17).
pub(super) const XDP_MAX_TX_SKB_BUDGET: libc::c_int = 9;

pub(super) const SO_PREFER_BUSY_POLL: libc::c_int = 69;
pub(super) const SO_BUSY_POLL_BUDGET: libc::c_int = 70;

pub(super) const ETHTOOL_GRXCLSRLCNT: u32 = 0x2e;
pub(super) const ETHTOOL_GRXCLSRLALL: u32 = 0x30;
pub(super) const ETHTOOL_SRXCLSRLDEL: u32 = 0x31;
pub(super) const ETHTOOL_SRXCLSRLINS: u32 = 0x32;
pub(super) const ETHTOOL_GCHANNELS: u32 = 0x3c;
pub(super) const UDP_V4_FLOW: u32 = 2;
pub(super) const RX_CLS_LOC_SPECIAL: u64 = 0x8000_0000;
pub(super) const RX_CLS_LOC_ANY: u32 = 0xffff_ffff;
