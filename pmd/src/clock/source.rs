//! Which clock poll loops read: the CPU's time stamp counter, where it can be trusted.
//!
//! The counter can be trusted if it is invariant, by CPUID: it runs at one rate whatever the state
//! of the core (Intel SDM vol. 3B, section 17.17.1; AMD APM vol. 3, Fn8000_0007_EDX, TscInvariant).
//! It can be trusted too if the kernel does, which compares it with other clocks, and between CPUs
//! (arch/x86/kernel/tsc.c): it has it among its clock sources as long as it has found no fault
//! (kernel/time/clocksource.c: one that is marked unstable is not listed any more).
//!
//! A paravirtual clock is made of the counter as well, but says nothing for it: `kvm-clock` and
//! `hyperv_clocksource_tsc_page` are chosen where the guest's counter is not invariant
//! (arch/x86/kernel/kvmclock.c, kvmclock_init; arch/x86/kernel/cpu/mshyperv.c marks it unstable), and
//! scale and shift it by what the hypervisor says for each CPU, and anew after a migration.

use std::fmt;
use std::fs;
use std::str::FromStr;

/// What a [`TscClock`](crate::TscClock) reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClockSource {
    /// The time stamp counter of the CPU.
    Tsc,
    /// `CLOCK_MONOTONIC_RAW` of the kernel: one cycle is one nanosecond. Some 20 to 50 ns without
    /// a system call where the kernel's own source is one that user space can read, else a system
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

/// What is asked for of a [`TscClock`](crate::TscClock).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClockChoice {
    /// The counter where CPU or kernel trusts it, else the kernel's clock and a warning.
    #[default]
    Auto,
    /// The counter in any case.
    Tsc,
    /// The kernel's clock in any case.
    Raw,
}

/// A choice that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no clock: auto, tsc or raw")]
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

/// What CPU and kernel say about the time stamp counter. Displays as that, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TscFacts {
    /// CPUID calls it invariant.
    pub invariant: bool,
    /// The kernel's clock source.
    pub current: String,
    /// The clock sources that the kernel could use, in the format of sysfs.
    pub available: String,
}

impl TscFacts {
    /// Folder of the kernel's clock source.
    pub const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";

    /// Those of this machine. A file that cannot be read is empty.
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

    /// What [`ClockChoice::Auto`] takes.
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
        // `tsc-early` is the same counter before the kernel has calibrated it to the end.
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
        assert_eq!(error, "`hpet` is no clock: auto, tsc or raw");
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
