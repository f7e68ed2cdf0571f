//! Interface control by ioctl: netdevice(7), ethtool.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::driver::Megabits;
use crate::net::MacAddr;
use crate::port::RxState;

/// linux/sockios.h
const SIOCGHWTSTAMP: libc::Ioctl = 0x89b1;
const SIOCETHTOOL: libc::Ioctl = 0x8946;
/// linux/ethtool.h
const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;

/// An Ethernet-like interface, as it was when the port was opened.
#[derive(Clone, Debug)]
pub(in crate::drivers) struct Interface {
    pub(in crate::drivers) name: String,
    pub(in crate::drivers) index: i32,
    /// Longest payload of a frame, in bytes.
    pub(in crate::drivers) mtu: usize,
    pub(in crate::drivers) mac: MacAddr,
}

/// Error: an interface cannot be used.
#[derive(Debug, thiserror::Error)]
pub(in crate::drivers) enum InterfaceError {
    #[error("no network interface `{name}`; there are: {known}")]
    Missing { name: String, known: String },
    #[error(
        "interface `{0}` carries no Ethernet frames (hardware type {1}, see if_arp.h); \
             use an Ethernet, veth, bridge, tap or loopback interface"
    )]
    NotEthernet(String, u16),
    #[error("interface `{name}` cannot be queried: {source}")]
    System { name: String, source: io::Error },
}

/// A socket for ioctls about interfaces; it needs no privilege.
pub(in crate::drivers) struct Control(OwnedFd);

impl Control {
    pub(in crate::drivers) fn new() -> io::Result<Self> {
        let (family, flags) = (AddressFamily::INET, SocketFlags::CLOEXEC);
        Ok(Self(socket_with(family, SocketType::DGRAM, flags, None)?))
    }

    pub(super) fn ask(&self, request: libc::Ioctl, ifreq: &mut libc::ifreq) -> io::Result<()> {
        // SAFETY: all requests made here read and write one `ifreq`, which is borrowed exclusively
        // for the call, and at most a configuration that it points to and that the caller keeps
        // until then.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), request, std::ptr::from_mut(ifreq)) };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// A request about the interface of that number, also after it was renamed.
    pub(super) fn request_by_index(&self, index: i32) -> io::Result<libc::ifreq> {
        // SAFETY: an `ifreq` of zeros is valid: an empty name and a union of plain integers.
        let mut ifreq: libc::ifreq = unsafe { std::mem::zeroed() };
        ifreq.ifr_ifru.ifru_ifindex = index;
        self.ask(libc::SIOCGIFNAME as libc::Ioctl, &mut ifreq)?;
        Ok(ifreq)
    }

    /// Whether the interface exists, is up, and has a carrier. The interface is identified by its
    /// number, so a renamed one is still the same, and a new one of the same name is not.
    pub(super) fn state(&self, index: i32) -> RxState {
        let mut ifreq = match self.request_by_index(index) {
            Ok(ifreq) => ifreq,
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return RxState::Gone,
            Err(_) => return RxState::Down,
        };
        let asked = self.ask(libc::SIOCGIFFLAGS as libc::Ioctl, &mut ifreq);
        let flags = asked.map_or(0, |()| {
            // SAFETY: SIOCGIFFLAGS succeeded, so it wrote this field.
            unsafe { ifreq.ifr_ifru.ifru_flags }
        });
        let wanted = libc::IFF_UP | libc::IFF_RUNNING;
        if i32::from(flags) & wanted == wanted {
            RxState::Live
        } else {
            RxState::Down
        }
    }

    /// Speed of the link, if the driver of the interface reports it: `ethtool_link_settings` of
    /// linux/ethtool.h.
    pub(super) fn speed(&self, index: i32) -> Option<Megabits> {
        /// Index of `link_mode_masks_nwords`.
        const MASK_WORDS: usize = 15;
        /// The fixed part, and three masks of 127 words at most.
        const LEN: usize = 48 + 3 * 127 * 4;
        let mut settings = [0; LEN];
        settings[..4].copy_from_slice(&ETHTOOL_GLINKSETTINGS.to_ne_bytes());
        let mut ifreq = self.request_by_index(index).ok()?;
        // The first answer is the length of the kernel's masks, as a negative number.
        for _ in 0..2 {
            // The kernel reads and writes `settings` in both requests; it lives until the end of
            // the function.
            ifreq.ifr_ifru.ifru_data = settings.as_mut_ptr().cast();
            self.ask(SIOCETHTOOL, &mut ifreq).ok()?;
            settings[MASK_WORDS] = (settings[MASK_WORDS] as i8).checked_neg()? as u8;
        }
        let speed = u32::from_ne_bytes(settings[4..8].try_into().ok()?);
        (speed != 0 && speed != u32::MAX).then_some(Megabits(speed))
    }

    /// Executes an ethtool command (linux/ethtool.h) on the interface.
    ///
    /// # Safety
    /// `T` is a structure of plain integers that begins with the command, and is as long as the
    /// data that the command reads and writes.
    pub(in crate::drivers) unsafe fn ethtool<T>(
        &self,
        index: i32,
        command: &mut T,
    ) -> io::Result<()> {
        let mut ifreq = self.request_by_index(index)?;
        ifreq.ifr_ifru.ifru_data = std::ptr::from_mut(command).cast();
        self.ask(SIOCETHTOOL, &mut ifreq)
    }

    /// Enables the receive time stamps of the NIC for all frames (the kernel's
    /// Documentation/networking/timestamping.rst, section 3.1), and keeps those of sent frames
    /// unchanged, which a time daemon may be using. Needs CAP_NET_ADMIN.
    pub(in crate::drivers) fn enable_hardware_stamps(&self, name: &str) -> io::Result<()> {
        let all = libc::HWTSTAMP_FILTER_ALL as libc::c_int;
        let mut config = libc::hwtstamp_config {
            flags: 0,
            tx_type: libc::HWTSTAMP_TX_OFF as libc::c_int,
            rx_filter: libc::HWTSTAMP_FILTER_NONE as libc::c_int,
        };
        let mut ifreq = request(name).ok_or(io::ErrorKind::InvalidInput)?;
        // The kernel reads and writes `config` in both requests; it lives until the end of the
        // function.
        ifreq.ifr_ifru.ifru_data = (&raw mut config).cast();
        // A driver that cannot report the setting may still be able to change it.
        let _ = self.ask(SIOCGHWTSTAMP, &mut ifreq);
        if config.rx_filter == all {
            return Ok(());
        }
        config.rx_filter = all;
        ifreq.ifr_ifru.ifru_data = (&raw mut config).cast();
        self.ask(libc::SIOCSHWTSTAMP as libc::Ioctl, &mut ifreq)?;
        if config.rx_filter == all {
            Ok(())
        } else {
            Err(io::ErrorKind::Unsupported.into())
        }
    }
}

/// A request about an interface by name; `None` if the name is invalid.
pub(in crate::drivers) fn request(name: &str) -> Option<libc::ifreq> {
    // SAFETY: an `ifreq` of zeros is valid: an empty name and a union of plain integers.
    let mut ifreq: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    if name.is_empty() || name.len() >= ifreq.ifr_name.len() || name.contains('\0') {
        return None;
    }
    for (to, &from) in ifreq.ifr_name.iter_mut().zip(name.as_bytes()) {
        *to = from as libc::c_char;
    }
    Some(ifreq)
}

impl Interface {
    pub(in crate::drivers) fn find(control: &Control, name: &str) -> Result<Self, InterfaceError> {
        let missing = || InterfaceError::Missing {
            name: name.into(),
            known: known(),
        };
        let system = |source: io::Error| match source.raw_os_error() {
            Some(libc::ENODEV) => missing(),
            _ => InterfaceError::System {
                name: name.into(),
                source,
            },
        };
        let mut ifreq = request(name).ok_or_else(missing)?;
        control
            .ask(libc::SIOCGIFINDEX as libc::Ioctl, &mut ifreq)
            .map_err(system)?;
        // SAFETY: SIOCGIFINDEX succeeded, so it wrote this field.
        let index = unsafe { ifreq.ifr_ifru.ifru_ifindex };
        control
            .ask(libc::SIOCGIFMTU as libc::Ioctl, &mut ifreq)
            .map_err(system)?;
        // SAFETY: SIOCGIFMTU succeeded, so it wrote this field.
        let mtu = unsafe { ifreq.ifr_ifru.ifru_mtu };
        control
            .ask(libc::SIOCGIFHWADDR as libc::Ioctl, &mut ifreq)
            .map_err(system)?;
        // SAFETY: SIOCGIFHWADDR succeeded, so it wrote this field.
        let hardware = unsafe { ifreq.ifr_ifru.ifru_hwaddr };
        if !matches!(
            hardware.sa_family,
            libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK
        ) {
            return Err(InterfaceError::NotEthernet(name.into(), hardware.sa_family));
        }
        let mac = std::array::from_fn(|i| hardware.sa_data[i] as u8);
        let mtu = usize::try_from(mtu).unwrap_or_default();
        Ok(Self {
            name: name.into(),
            index,
            mtu,
            mac: MacAddr(mac),
        })
    }
}

/// The names of all interfaces, for messages.
fn known() -> String {
    let mut names = Vec::new();
    // SAFETY: no arguments; the result is checked and freed below.
    let list = unsafe { libc::if_nameindex() };
    if !list.is_null() {
        let mut at = list;
        // SAFETY: the array ends with an entry whose name is null (if_nameindex(3)).
        while let Some(name) = unsafe { (*at).if_name.as_ref() } {
            // SAFETY: each name is a string with a terminating zero.
            let name = unsafe { CStr::from_ptr(name) };
            names.push(name.to_string_lossy().into_owned());
            // SAFETY: this was not the last entry.
            at = unsafe { at.add(1) };
        }
        // SAFETY: `list` came from if_nameindex and is freed once.
        unsafe { libc::if_freenameindex(list) };
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn loopback_is_there_and_others_are_named() {
        let control = Control::new().unwrap();
        let lo = Interface::find(&control, "lo").unwrap();
        assert_eq!((lo.index, lo.mac), (1, MacAddr::ZERO));
        for name in ["", "no-such-if", "a-name-that-is-far-too-long", "l\0o"] {
            let error = Interface::find(&control, name).unwrap_err().to_string();
            assert!(error.starts_with(&format!("no network interface `{name}`; there are: ")));
            assert!(error.contains("lo"), "{error}");
        }
    }
}
