//! Receive time stamps of the device.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use pollux_dpdk_sys as dpdk;
use pollux_mempool::time::WireTime;

use super::control::Control;
use super::device::Device;
use super::eal::text_of;

/// Time for which the device's clock is measured before the first time stamp, to determine its
/// rate.
const WATCHED: Duration = Duration::from_millis(50);

/// Interval of the corrections: clocks drift (some 1e-6 from minute to minute), and can be read to
/// some 1e-6 s.
const FOLLOWED: Duration = Duration::from_secs(1);

/// Location and unit of a frame's time stamp in DPDK (rte_mbuf_dyn.h).
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamps {
    offset: usize,
    flag: u64,
    scale: Scale,
}

/// Conversion of the device's clock to time since 1970.
#[derive(Clone, Copy, Debug)]
enum Scale {
    /// The time stamps are nanoseconds since 1970: those of the kernel, and of devices whose clock
    /// cannot be read.
    Unix,
    /// Time stamps of the device's own clock.
    Own(Fit),
}

/// A simultaneous reading of all clocks.
#[derive(Clone, Copy, Debug)]
struct Reading {
    /// The device's clock.
    ticks: u64,
    /// Time since 1970 by the system's clock, which may be set.
    ns: u64,
    /// By the clock of the same rate that is never set.
    at: Instant,
}

impl Reading {
    /// The tightest of several readings, so that a preemption between the clocks does not corrupt
    /// it.
    fn take(control: &Control<'_>) -> Option<Self> {
        let reading = |_| {
            let at = Instant::now();
            let reading = Self {
                ticks: control.clock()?,
                ns: WireTime::now().0,
                at,
            };
            Some((at.elapsed(), reading))
        };
        let readings = (0..4).filter_map(reading);
        readings
            .min_by_key(|(took, _)| *took)
            .map(|(_, reading)| reading)
    }
}

/// The device's clock relative to the system's.
#[derive(Clone, Copy, Debug)]
struct Fit {
    last: Reading,
    ns_per_tick: f64,
}

impl Fit {
    /// Continues from a later reading, with the rate since the last one. If the device's clock has
    /// been set back or stood still in between, the rate is kept.
    fn go_on(&mut self, now: Reading) {
        let ticks = now.ticks.wrapping_sub(self.last.ticks) as i64;
        let ns = now.at.saturating_duration_since(self.last.at).as_nanos();
        if ticks > 0 && ns > 0 {
            self.ns_per_tick = ns as f64 / ticks as f64;
        }
        self.last = now;
    }

    /// Converts a time stamp to time since 1970, before or after the last reading.
    #[inline]
    fn unix(&self, stamp: u64) -> u64 {
        let ticks = stamp.wrapping_sub(self.last.ticks) as i64;
        let ns = (ticks as f64 * self.ns_per_tick) as i64;
        self.last.ns.saturating_add_signed(ns)
    }
}

impl Stamps {
    /// Determines the location of time stamps, and the rate of a started device's clock.
    pub(super) fn new(device: &Device) -> Result<Self, String> {
        let (mut offset, mut flag): (c_int, u64) = (0, 0);
        // SAFETY: plain results.
        let result =
            unsafe { dpdk::rte_mbuf_dyn_rx_timestamp_register(&raw mut offset, &raw mut flag) };
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        if result != 0 || offset > size_of::<dpdk::rte_mbuf>() - size_of::<u64>() {
            return Err(format!("no place for stamps: {}", text_of(result)));
        }
        let control = device.control();
        let mut scale = Scale::Unix;
        if let Some(last) = Reading::take(&control) {
            std::thread::sleep(WATCHED);
            let ns_per_tick = 1.0;
            let mut fit = Fit { last, ns_per_tick };
            fit.go_on(Reading::take(&control).unwrap_or(last));
            scale = Scale::Own(fit);
        }
        Ok(Self {
            offset,
            flag,
            scale,
        })
    }

    /// Follows the device's clock, which has a rate of its own.
    pub(super) fn follow(&mut self, control: &Control<'_>) {
        if let Scale::Own(fit) = &mut self.scale
            && fit.last.at.elapsed() >= FOLLOWED
            && let Some(now) = Reading::take(control)
        {
            fit.go_on(now);
        }
    }

    /// The time stamp of a frame, if the device has stamped it.
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
        Some(WireTime(match &self.scale {
            Scale::Unix => stamp,
            Scale::Own(fit) => fit.unix(stamp),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_of_the_device_is_followed() {
        let start = Instant::now();
        let reading = |ticks, ns, ms| Reading {
            ticks,
            ns,
            at: start + Duration::from_millis(ms),
        };
        let mut fit = Fit {
            last: reading(1000, 5_000_000, 0),
            ns_per_tick: 2.5,
        };
        assert_eq!(fit.unix(1000), 5_000_000);
        assert_eq!(fit.unix(1400), 5_001_000);
        assert_eq!(fit.unix(600), 4_999_000);

        // It has run faster, and the system's clock was set.
        fit.go_on(reading(501_000, 77_000_000, 1));
        assert_eq!(fit.unix(501_500), 77_001_000);
        // The system's clock was set back, the device's ran on: the rate is unchanged.
        fit.go_on(reading(1_001_000, 4_000, 2));
        assert_eq!(fit.unix(1_001_000), 4_000);
        assert_eq!(fit.unix(1_002_000), 6_000);
        // Times before 1970 are clamped.
        assert_eq!(fit.unix(0), 0);
        // The device's clock was set back, or stands still.
        fit.go_on(reading(50, 1_000_000, 3));
        fit.go_on(reading(50, 2_000_000, 4));
        assert_eq!(fit.unix(60), 2_000_020);
        // A clock that has wrapped.
        fit.go_on(reading(u64::MAX - 499, 3_000_000, 5));
        fit.go_on(reading(500, 4_000_000, 6));
        assert_eq!(fit.unix(1500), 5_000_000);
    }
}
