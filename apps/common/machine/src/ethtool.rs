//! Driver settings of an interface: the SIOCETHTOOL requests of linux/ethtool.h, and one of
//! netdevice(7). They need no privilege, and change nothing.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// linux/sockios.h
const SIOCETHTOOL: libc::Ioctl = 0x8946;

// linux/ethtool.h: the requests, and the words of their answers.
const GCOALESCE: u32 = 0x0e;
const GRINGPARAM: u32 = 0x10;
const GPAUSEPARAM: u32 = 0x12;
const GFLAGS: u32 = 0x25;
const GGRO: u32 = 0x2b;
const FLAG_RX_VLAN: u32 = 1 << 8;
const FLAG_LRO: u32 = 1 << 15;
/// Words in `struct ethtool_coalesce`, the largest of the answers.
const WORDS: usize = 23;

/// Settings of an interface; `None` where its driver does not report them.
#[derive(Clone, Debug, Default)]
pub struct Nic {
    /// The receive ring.
    pub rings: Option<Rings>,
    /// The kernel merges frames of one flow in software (GRO).
    pub gro: Option<bool>,
    /// The device merges frames of one flow (LRO).
    pub lro: Option<bool>,
    /// The device strips VLAN tags from frames and reports them in metadata.
    pub rx_vlan: Option<bool>,
    /// Flow control.
    pub pause: Option<Pause>,
    /// Interrupt coalescing.
    pub coalescing: Option<Coalescing>,
}

/// Descriptors in the receive ring.
#[derive(Clone, Copy, Debug)]
pub struct Rings {
    /// Those in use.
    pub rx: u32,
    /// Those that the device can have.
    pub rx_max: u32,
}

/// Flow control (IEEE 802.3 annex 31B).
#[derive(Clone, Copy, Debug)]
pub struct Pause {
    /// It obeys pause frames.
    pub rx: bool,
    /// It sends pause frames.
    pub tx: bool,
}

/// Interrupt coalescing time of the device.
#[derive(Clone, Copy, Debug)]
pub struct Coalescing {
    /// The driver changes it with the load.
    pub adaptive: bool,
    /// Time in microseconds.
    pub rx_us: u32,
}

/// A socket for the requests.
pub struct Ethtool(OwnedFd);

impl Ethtool {
    /// Opens it.
    ///
    /// # Errors
    /// Those of socket(2).
    pub fn new() -> io::Result<Self> {
        let (family, flags) = (AddressFamily::INET, SocketFlags::CLOEXEC);
        Ok(Self(socket_with(family, SocketType::DGRAM, flags, None)?))
    }

    /// Settings of an interface.
    #[must_use]
    pub fn nic(&self, name: &str) -> Nic {
        let ask = |request| self.ask(name, request).ok();
        let flags = ask(GFLAGS).map(|words| words[1]);
        Nic {
            rings: ask(GRINGPARAM).map(|words| Rings {
                rx: words[5],
                rx_max: words[1],
            }),
            gro: ask(GGRO).map(|words| words[1] != 0),
            lro: flags.map(|flags| flags & FLAG_LRO != 0),
            rx_vlan: flags.map(|flags| flags & FLAG_RX_VLAN != 0),
            pause: ask(GPAUSEPARAM).map(|words| Pause {
                rx: words[2] != 0,
                tx: words[3] != 0,
            }),
            coalescing: ask(GCOALESCE).map(|words| Coalescing {
                adaptive: words[10] != 0,
                rx_us: words[1],
            }),
        }
    }

    fn ask(&self, name: &str, request: u32) -> io::Result<[u32; WORDS]> {
        let mut words = [0_u32; WORDS];
        words[0] = request;
        let mut ifreq = named(name)?;
        ifreq.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
        // SAFETY: SIOCETHTOOL takes an `ifreq` whose data is a request and room for its answer;
        // each answer to the requests above fits `words`, which outlives the call.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), SIOCETHTOOL, &raw mut ifreq) };
        if result == 0 {
            Ok(words)
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// The first IPv4 address of an interface, if it has one.
    #[must_use]
    pub fn ipv4_address(&self, name: &str) -> Option<Ipv4Addr> {
        let mut ifreq = named(name).ok()?;
        let request = libc::SIOCGIFADDR as libc::Ioctl;
        // SAFETY: SIOCGIFADDR reads and writes one `ifreq`, borrowed for the call.
        if unsafe { libc::ioctl(self.0.as_raw_fd(), request, &raw mut ifreq) } != 0 {
            return None;
        }
        // SAFETY: SIOCGIFADDR succeeded, so it wrote this field, with an AF_INET address: the
        // socket's family. Bytes 2 to 6 behind the port are the address (ip(7)).
        let address = unsafe { ifreq.ifr_ifru.ifru_addr };
        let bytes: [u8; 4] = std::array::from_fn(|i| address.sa_data[2 + i] as u8);
        Some(bytes.into())
    }
}

/// A request about an interface.
fn named(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: an `ifreq` of zeros is valid: an empty name and a union of plain integers.
    let mut ifreq: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    if name.is_empty() || name.len() >= ifreq.ifr_name.len() || name.contains('\0') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, &from) in ifreq.ifr_name.iter_mut().zip(name.as_bytes()) {
        *to = from as libc::c_char;
    }
    Ok(ifreq)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_loopback_is_asked_and_others_are_not_known() {
        let ethtool = Ethtool::new().unwrap();
        let lo = ethtool.nic("lo");
        assert!(lo.gro.is_some() && lo.rings.is_none());
        for name in ["", "no-such-if", "a-name-that-is-far-too-long", "l\0o"] {
            assert!(ethtool.nic(name).gro.is_none());
            assert_eq!(ethtool.ipv4_address(name), None);
        }
        let address = ethtool.ipv4_address("lo");
        assert!(address.is_none_or(|address| address.is_loopback()));
    }
}
