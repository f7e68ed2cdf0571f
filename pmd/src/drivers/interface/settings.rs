//! Changes of interface settings, for drivers that create their interface. They need CAP_NET_ADMIN.

use std::io;

use super::Control;

impl Control {
    /// Sets the longest payload of a frame, in bytes.
    pub(in crate::drivers) fn set_mtu(&self, index: i32, mtu: usize) -> io::Result<()> {
        let mut ifreq = self.request_by_index(index)?;
        ifreq.ifr_ifru.ifru_mtu = mtu as libc::c_int;
        self.ask(libc::SIOCSIFMTU as libc::Ioctl, &mut ifreq)
    }

    /// Sets the capacity of each queue of the interface, in frames.
    pub(in crate::drivers) fn set_queue_len(&self, index: i32, frames: usize) -> io::Result<()> {
        let mut ifreq = self.request_by_index(index)?;
        // `ifr_qlen` and `ifr_metric` are the same word of the kernel's union.
        ifreq.ifr_ifru.ifru_metric = frames as libc::c_int;
        self.ask(libc::SIOCSIFTXQLEN as libc::Ioctl, &mut ifreq)
    }

    /// As `ip link set IF up`.
    pub(in crate::drivers) fn switch_on(&self, index: i32) -> io::Result<()> {
        let mut ifreq = self.request_by_index(index)?;
        self.ask(libc::SIOCGIFFLAGS as libc::Ioctl, &mut ifreq)?;
        // SAFETY: SIOCGIFFLAGS succeeded, so it wrote this field.
        let flags = unsafe { ifreq.ifr_ifru.ifru_flags };
        ifreq.ifr_ifru.ifru_flags = flags | libc::IFF_UP as libc::c_short;
        self.ask(libc::SIOCSIFFLAGS as libc::Ioctl, &mut ifreq)
    }
}
