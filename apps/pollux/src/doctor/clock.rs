//! Checks of the time stamp counter, of the clocks that depend on it, and of hypervisor influence.

use pollux_pmd::{ClockSource, TscFacts};

use super::finding::{Check, Finding};
use super::machine::Machine;

const TSC: Check = Check {
    name: "tsc",
    why: "All stamps and deadlines are read from the time stamp counter, so it must tick evenly.",
};

/// Whether the CPU reports an invariant counter.
pub(super) fn tsc(machine: &Machine) -> Vec<Finding> {
    let flags = match machine.cpu_flags() {
        Ok(flags) => flags,
        Err(unread) => return vec![TSC.unread(&unread)],
    };
    let has = |name| flags.iter().any(|flag| flag == name);
    vec![if has("constant_tsc") && has("nonstop_tsc") {
        TSC.ok("constant, also while a core sleeps")
    } else if has("hypervisor") {
        TSC.note(
            "the hypervisor does not promise that it is constant; give the guest the processor's \
             own flags (QEMU: -cpu host,+invtsc)",
        )
        .look("grep -o '[a-z]*_tsc' /proc/cpuinfo | sort | uniq -c")
    } else if has("constant_tsc") {
        TSC.warn("constant, but it stops while a core sleeps deeply")
            .boot("processor.max_cstate=1 intel_idle.max_cstate=1")
    } else {
        TSC.bad("not constant: it changes with the frequency of the core")
            .run("cpupower frequency-set -g performance")
    }]
}

/// Whether the kernel's clock source is the counter.
const FOLDER: &str = TscFacts::FOLDER;

const CLOCK_SOURCE: Check = Check {
    name: "clocksource",
    why: "The kernel tells by its choice whether it trusts the counter; other sources are slow to read.",
};

/// The kernel's clock source.
pub(super) fn source(machine: &Machine) -> Vec<Finding> {
    let current = match machine.sys.text(&format!("{FOLDER}/current_clocksource")) {
        Ok(current) => current,
        Err(unread) => return vec![CLOCK_SOURCE.unread(&unread)],
    };
    let others = machine
        .sys
        .text(&format!("{FOLDER}/available_clocksource"))
        .unwrap_or_default();
    vec![match current.as_str() {
        "tsc" => CLOCK_SOURCE.ok("tsc"),
        // Both are derived from the counter, with the hypervisor's corrections.
        "kvm-clock" | "hyperv_clocksource_tsc_page" => CLOCK_SOURCE.ok(current),
        _ if others.split_whitespace().any(|name| name == "tsc") => CLOCK_SOURCE
            .warn(format!("{current:?}, although tsc is there"))
            .run(format!("echo tsc > {FOLDER}/current_clocksource")),
        _ => CLOCK_SOURCE
            .bad(format!(
                "{current:?}: the kernel has found tsc unreliable (see dmesg)"
            ))
            .boot("tsc=reliable"),
    }]
}

const LOOPS: Check = Check {
    name: "loop-clock",
    why: "Loops read the time stamp counter only where the processor or the kernel trusts it.",
};

/// Clock that the loops of programs read, unless `--clock` selects another.
pub(super) fn of_loops(machine: &Machine) -> Vec<Finding> {
    let flags = match machine.cpu_flags() {
        Ok(flags) => flags,
        Err(unread) => return vec![LOOPS.unread(&unread)],
    };
    let has = |name| flags.iter().any(|flag| flag == name);
    let source = |name| {
        let text = machine.sys.text(&format!("{FOLDER}/{name}"));
        text.unwrap_or_default()
    };
    let facts = TscFacts {
        // The kernel derives both flags from one bit of CPUID (arch/x86/kernel/cpu/intel.c and
        // amd.c).
        invariant: has("constant_tsc") && has("nonstop_tsc"),
        current: source("current_clocksource"),
        available: source("available_clocksource"),
    };
    vec![match facts.source() {
        ClockSource::Tsc => LOOPS.ok(format!("the time stamp counter: {facts}")),
        ClockSource::Raw => LOOPS
            .warn(format!(
                "CLOCK_MONOTONIC_RAW, which takes longer and may enter the kernel: {facts}"
            ))
            .option("--clock tsc"),
    }]
}

const VIRTUAL: Check = Check {
    name: "virtualisation",
    why: "A hypervisor can take a core away at any time, which no setting in the guest prevents.",
};

/// Whether this is a guest.
pub(super) fn hypervisor(machine: &Machine) -> Vec<Finding> {
    vec![match machine.is_guest() {
        Ok(false) => VIRTUAL.ok("none seen"),
        Ok(true) => {
            let product = machine.sys.text("/sys/class/dmi/id/product_name");
            let product = product.map_or(String::new(), |name| format!(" ({name:?})"));
            VIRTUAL
                .note(format!(
                    "a virtual machine{product}: have its CPUs pinned to cores of their own"
                ))
                // Its column `st`: steal time, taken by the hypervisor.
                .look("vmstat 1 5")
        }
        Err(unread) => VIRTUAL.unread(&unread),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::testing::{Case, levels};
    use super::*;
    use pollux_machine::testing::Tree;

    #[test]
    fn the_counter_must_be_constant() {
        let at = "/proc/cpuinfo";
        let flags = |flags: &str| format!("processor\t: 0\nflags\t\t: fpu {flags} sse\nbugs:\n");
        Case::of(tsc).is(&flags("constant_tsc nonstop_tsc"), at, Level::Ok);
        Case::of(tsc).is(&flags("constant_tsc"), at, Level::Warn);
        Case::of(tsc).is(&flags("not_constant_tsc"), at, Level::Bad);
        let guest = Case::of(tsc).file(at, &flags("hypervisor")).finding();
        assert_eq!(guest.level, Level::Note);
        Case::of(tsc).is("", at, Level::Note);
        assert_eq!(levels(tsc, &Tree::new()), [Level::Note]);
        Case::of(hypervisor).is(&flags("hypervisor"), at, Level::Note);
        Case::of(hypervisor).is(&flags(""), at, Level::Ok);
        assert_eq!(levels(hypervisor, &Tree::new()), [Level::Note]);
    }

    #[test]
    fn the_clock_of_loops_is_told_with_its_reason() {
        let cpu = |flags: &str| {
            let text = format!("flags\t\t: fpu {flags} sse\n");
            Case::of(of_loops).file("/proc/cpuinfo", &text)
        };
        let available = format!("{FOLDER}/available_clocksource");
        let trusted = "constant_tsc nonstop_tsc";
        cpu(trusted).is("hpet acpi_pm\n", &available, Level::Ok);
        cpu("hypervisor").is("kvm-clock tsc acpi_pm\n", &available, Level::Ok);
        cpu("hypervisor").is("kvm-clock acpi_pm\n", &available, Level::Warn);
        let finding = cpu("constant_tsc")
            .file(&available, "hpet\u{1b}[2J")
            .finding();
        assert_eq!(finding.level, Level::Warn);
        assert!(finding.found.starts_with("CLOCK_MONOTONIC_RAW"));
        assert!(
            finding.found.contains("is unknown of hpet\\u{1b}[2J"),
            "{finding:?}"
        );
        assert_eq!(levels(of_loops, &Tree::new()), [Level::Note]);
    }

    #[test]
    fn the_kernels_choice_is_judged() {
        let (current, others) = (
            format!("{FOLDER}/current_clocksource"),
            format!("{FOLDER}/available_clocksource"),
        );
        Case::of(source).is("tsc\n", &current, Level::Ok);
        Case::of(source).is("kvm-clock", &current, Level::Ok);
        Case::of(source).is("hpet", &current, Level::Bad);
        Case::of(source)
            .file(&others, "hpet tsc acpi_pm")
            .is("hpet", &current, Level::Warn);
        Case::of(source).is("\u{1b}[2J", &current, Level::Bad);
        assert_eq!(levels(source, &Tree::new()), [Level::Note]);
    }
}
