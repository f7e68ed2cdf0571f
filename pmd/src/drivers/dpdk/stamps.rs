//! Receive stamps of the device.

use std::ffi::c_int;
use std::time::Duration;

use dpdk_sys as dpdk;
use pollux_mempool::time::WireTime;

use super::device::Device;
use super::eal::text_of;

/// How long the device's clock is watched to learn how fast it runs.
const WATCHED: Duration = Duration::from_millis(50);

/// Where DPDK puts the stamp of a frame (rte_mbuf_dyn.h), and what it means.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamps {
    offset: usize,
    flag: u64,
    scale: Scale,
}

/// From the device's clock to time since 1970.
#[derive(Clone, Copy, Debug)]
enum Scale {
    /// The stamps are nanoseconds since 1970: those of the kernel, and of devices whose clock
    /// cannot be read.
    Unix,
    /// A clock of the device's own, which stood at `ticks` when it was `ns` since 1970.
    Own {
        ticks: u64,
        ns: u64,
        ns_per_tick: f64,
    },
}

impl Stamps {
    /// Learns where stamps are put, and how the clock of a started device runs.
    pub(super) fn new(device: &Device) -> Result<Self, String> {
        let (mut offset, mut flag): (c_int, u64) = (0, 0);
        // SAFETY: plain results.
        let result =
            unsafe { dpdk::rte_mbuf_dyn_rx_timestamp_register(&raw mut offset, &raw mut flag) };
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        if result != 0 || offset > size_of::<dpdk::rte_mbuf>() - size_of::<u64>() {
            return Err(format!("no place for stamps: {}", text_of(result)));
        }
        let scale = match (device.clock(), WireTime::now().0) {
            (None, _) => Scale::Unix,
            (Some(before), ns_before) => {
                std::thread::sleep(WATCHED);
                let (ticks, ns) = (device.clock().unwrap_or(before), WireTime::now().0);
                let passed = ticks.wrapping_sub(before).max(1);
                let ns_per_tick = (ns - ns_before) as f64 / passed as f64;
                Scale::Own {
                    ticks,
                    ns,
                    ns_per_tick,
                }
            }
        };
        Ok(Self {
            offset,
            flag,
            scale,
        })
    }

    /// The stamp of a frame, if the device has stamped it.
    #[inline]
    pub(super) fn of(&self, mbuf: &dpdk::rte_mbuf) -> Option<WireTime> {
        if mbuf.ol_flags & self.flag == 0 {
            return None;
        }
        // SAFETY: a dynamic field lies inside the structure, as `new` has checked.
        let stamp = unsafe {
            (&raw const *mbuf)
                .byte_add(self.offset)
                .cast::<u64>()
                .read_unaligned()
        };
        Some(WireTime(self.scale.unix(stamp)))
    }
}

impl Scale {
    fn unix(self, stamp: u64) -> u64 {
        match self {
            Self::Unix => stamp,
            Self::Own {
                ticks,
                ns,
                ns_per_tick,
            } => {
                // Before or after the clock was read.
                let since = stamp.wrapping_sub(ticks) as i64;
                ns.wrapping_add_signed((since as f64 * ns_per_tick) as i64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_of_the_device_is_set_against_the_systems() {
        let scale = Scale::Own {
            ticks: 1000,
            ns: 5_000_000,
            ns_per_tick: 2.5,
        };
        assert_eq!(scale.unix(1000), 5_000_000);
        assert_eq!(scale.unix(1400), 5_001_000);
        assert_eq!(scale.unix(600), 4_999_000);
        assert_eq!(Scale::Unix.unix(7), 7);
    }
}
