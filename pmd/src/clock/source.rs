//! Clock source of poll loops: the CPU's time stamp counter (TSC) where it is trustworthy, else the
//! kernel.
//!
//! The counter is trustworthy if CPUID reports it as invariant: it runs at one rate in every power
//! state of the core (Intel SDM vol. 3B, section 17.17.1; AMD APM vol. 3, Fn8000_0007_EDX,
//! TscInvariant). It is trustworthy too if the kernel trusts it. The kernel compares it with other
//! clocks, and between CPUs (arch/x86/kernel/tsc.c), and lists it among its clock sources until it
//! finds a fault (kernel/time/clocksource.c: a source that is marked unstable is no longer listed).
//!
//! A paravirtual clock is derived from the counter as well, but does not prove that the counter is
//! trustworthy. The kernel selects `kvm-clock` and `hyperv_clocksource_tsc_page` where the guest's
//! counter is not invariant (arch/x86/kernel/kvmclock.c, kvmclock_init;
//! arch/x86/kernel/cpu/mshyperv.c marks it unstable). They scale and shift the counter by
//! parameters that the hypervisor supplies for each CPU, and anew after a migration.

use std::fmt;
use std::fs;
use std::str::FromStr;

/// Source that a [`TscClock`](crate::TscClock) reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClockSource {
    /// The time stamp counter of the CPU.
    Tsc,
    /// `CLOCK_MONOTONIC_RAW` of the kernel: one cycle is one nanosecond. A reading takes some 20 to
    /// 50 ns without a system call where user space can read the kernel's own source, else a system
    /// call.
    Raw,
}

impl fmt::Display for ClockSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tsc => "tsc",
            Self::Raw => "raw",
        })
    }
}

/// Requested source of a [`TscClock`](crate::TscClock).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClockChoice {
    /// The counter where the CPU or the kernel trusts it, else the kernel's clock with a warning.
    #[default]
    Auto,
    /// Always the counter.
    Tsc,
    /// Always the kernel's clock.
    Raw,
}

/// Error: an unknown choice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a clock source: auto, tsc or raw")]
pub struct BadClockChoice(String);

impl FromStr for ClockChoice {
    type Err = BadClockChoice;

    fn from_str(text: &str) -> Result<Self, BadClockChoice> {
        match text {
            "auto" => Ok(Self::Auto),
            "tsc" => Ok(Self::Tsc),
            "raw" => Ok(Self::Raw),
            _ => Err(BadClockChoice(text.into())),
        }
    }
}

impl fmt::Display for ClockChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Tsc => "tsc",
            Self::Raw => "raw",
        })
    }
}

/// Properties of the time stamp counter by CPU and kernel. `Display` prints them as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TscFacts {
    /// CPUID reports the counter as invariant.
    pub invariant: bool,
    /// The kernel's clock source.
    pub current: String,
    /// The clock sources that the kernel could use, in the format of sysfs.
    pub available: String,
}

impl TscFacts {
    /// Folder of the kernel's clock source.
    pub const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";

    /// The properties on this machine. A file that cannot be read counts as empty.
    #[must_use]
    pub fn read() -> Self {
        let text = |name| {
            let text = fs::read_to_string(format!("{}/{name}", Self::FOLDER));
            text.unwrap_or_default().trim().to_owned()
        };
        Self {
            invariant: is_invariant(),
            current: text("current_clocksource"),
            available: text("available_clocksource"),
        }
    }

    /// The source that [`ClockChoice::Auto`] selects.
    #[must_use]
    pub fn source(&self) -> ClockSource {
        if self.invariant || self.is_kernels() {
            ClockSource::Tsc
        } else {
            ClockSource::Raw
        }
    }

    /// Whether the kernel has the counter among its clock sources.
    fn is_kernels(&self) -> bool {
        // `tsc-early` is the same counter before the kernel has finished its calibration.
        let mut kernels = self.available.split_whitespace().chain([&*self.current]);
        kernels.any(|name| matches!(name, "tsc" | "tsc-early"))
    }

    pub(super) fn choose(&self, choice: ClockChoice) -> ClockSource {
        match choice {
            ClockChoice::Tsc => ClockSource::Tsc,
            ClockChoice::Raw => ClockSource::Raw,
            ClockChoice::Auto => {
                let source = self.source();
                if source == ClockSource::Tsc && !self.available.is_empty() && !self.is_kernels() {
                    tracing::warn!(
                        "the kernel does not use the time stamp counter: {self}. If it has found it \
                         at fault (dmesg says so), `--clock raw` reads the kernel's clock instead"
                    );
                }
                if source == ClockSource::Raw {
                    tracing::warn!(
                        "the time stamp counter is not to be trusted: {self}. Time is read from \
                         CLOCK_MONOTONIC_RAW, which takes longer and may enter the kernel; \
                         `--clock tsc` reads the counter all the same"
                    );
                }
                source
            }
        }
    }
}

impl fmt::Display for TscFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.invariant {
            "calls"
        } else {
            "does not call"
        };
        let name = |text: &str| {
            if text.is_empty() { "unknown" } else { text }
                .escape_debug()
                .to_string()
        };
        write!(
            f,
            "CPUID {word} it invariant, the kernel's clock source is {} of {}",
            name(&self.current),
            name(&self.available)
        )
    }
}

/// CPUID leaf 0x80000007, EDX bit 8.
fn is_invariant() -> bool {
    const LEAF: u32 = 0x8000_0007;
    let leaf = std::arch::x86_64::__cpuid;
    leaf(0x8000_0000).eax >= LEAF && leaf(LEAF).edx & 1 << 8 != 0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn facts(invariant: bool, current: &str, available: &str) -> TscFacts {
        TscFacts {
            invariant,
            current: current.into(),
            available: available.into(),
        }
    }

    #[test]
    fn an_untrusted_tsc_is_replaced_by_the_kernels_clock() {
        for (invariant, current, available, source) in [
            (true, "tsc", "tsc hpet acpi_pm", ClockSource::Tsc),
            (false, "tsc", "tsc hpet acpi_pm", ClockSource::Tsc),
            (false, "tsc-early", "tsc-early hpet", ClockSource::Tsc),
            (
                false,
                "kvm-clock",
                "kvm-clock tsc acpi_pm",
                ClockSource::Tsc,
            ),
            (true, "hpet", "hpet acpi_pm", ClockSource::Tsc),
            (true, "", "", ClockSource::Tsc),
            (false, "hpet", "hpet acpi_pm", ClockSource::Raw),
            (false, "kvm-clock", "kvm-clock acpi_pm", ClockSource::Raw),
            (
                false,
                "hyperv_clocksource_tsc_page",
                "hyperv_clocksource_tsc_page",
                ClockSource::Raw,
            ),
            (false, "", "", ClockSource::Raw),
        ] {
            let facts = facts(invariant, current, available);
            assert_eq!(facts.source(), source, "{facts}");
            assert_eq!(facts.choose(ClockChoice::Auto), source, "{facts}");
            assert_eq!(facts.choose(ClockChoice::Tsc), ClockSource::Tsc);
            assert_eq!(facts.choose(ClockChoice::Raw), ClockSource::Raw);
        }
    }

    #[test]
    fn choices_are_read_and_written() {
        for choice in [ClockChoice::Auto, ClockChoice::Tsc, ClockChoice::Raw] {
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        let error = "hpet".parse::<ClockChoice>().unwrap_err().to_string();
        assert_eq!(error, "`hpet` is not a clock source: auto, tsc or raw");
    }

    #[test]
    fn facts_say_what_was_seen() {
        let text = facts(false, "hpet", "hpet acpi_pm").to_string();
        assert_eq!(
            text,
            "CPUID does not call it invariant, the kernel's clock source is hpet of hpet acpi_pm"
        );
        assert!(
            facts(true, "", "")
                .to_string()
                .contains("is unknown of unknown")
        );
    }
}
