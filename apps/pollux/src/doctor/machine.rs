//! The examined machine and its CPUs.

use pollux_pmd::lcore::parse_cpu_list;

use pollux_machine::{Sys, Unread, cpu_list, process};

/// Input of the checks.
pub(super) struct Machine {
    pub(super) sys: Sys,
    /// CPUs for loops: the requested ones, else the isolated ones, else all that the process may
    /// use.
    pub(super) cores: Vec<usize>,
    /// Requested or isolated: these CPUs are certainly meant for loops.
    pub(super) cores_are_chosen: bool,
}

impl Machine {
    pub(super) fn new(sys: Sys, asked: Option<Vec<usize>>) -> Self {
        let isolated = cpus(&sys, ISOLATED).unwrap_or_default();
        let chosen = asked.or_else(|| (!isolated.is_empty()).then_some(isolated));
        Self {
            cores_are_chosen: chosen.is_some(),
            cores: chosen.unwrap_or_else(|| allowed(&sys)),
            sys,
        }
    }

    /// Refuses requested CPUs that are not online here: findings about them would not hold. If the
    /// list of online CPUs is unreadable, all are accepted.
    pub(super) fn expect_cores(&self) -> anyhow::Result<()> {
        let online = self.online();
        let absent = self.cores.iter().copied();
        let absent: Vec<_> = absent.filter(|cpu| !online.contains(cpu)).collect();
        anyhow::ensure!(
            absent.is_empty() || online.is_empty(),
            "--cores: {} not there; this machine runs {}",
            match absent.as_slice() {
                [one] => format!("CPU {one} is"),
                many => format!("CPUs {} are", cpu_list(many)),
            },
            cpu_list(&online)
        );
        Ok(())
    }

    /// All online CPUs.
    pub(super) fn online(&self) -> Vec<usize> {
        cpus(&self.sys, "/sys/devices/system/cpu/online").unwrap_or_default()
    }

    /// CPUs that could be isolated for loops: the chosen ones, else all but the first and its
    /// siblings, which are left to the kernel and the housekeeping threads.
    pub(super) fn spare(&self) -> Vec<usize> {
        if self.cores_are_chosen {
            return self.cores.clone();
        }
        let online = self.online();
        let first = online.first().copied().unwrap_or_default();
        let siblings = self.siblings(first);
        let free = online
            .into_iter()
            .filter(|cpu| *cpu != first && !siblings.contains(cpu));
        free.collect()
    }

    /// CPUs for the kernel's own work: all but those for loops.
    pub(super) fn housekeeping(&self) -> Vec<usize> {
        let spare = self.spare();
        self.online()
            .into_iter()
            .filter(|cpu| !spare.contains(cpu))
            .collect()
    }

    /// Hardware threads of the same core, including the CPU itself.
    pub(super) fn siblings(&self, cpu: usize) -> Vec<usize> {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        cpus(&self.sys, &path).unwrap_or_default()
    }

    /// NUMA nodes, in order.
    pub(super) fn nodes(&self) -> Vec<usize> {
        self.sys.numbered("/sys/devices/system/node", "node")
    }

    /// CPUs of a NUMA node.
    pub(super) fn node_cpus(&self, node: usize) -> Vec<usize> {
        let path = format!("/sys/devices/system/node/node{node}/cpulist");
        cpus(&self.sys, &path).unwrap_or_default()
    }

    /// The values of a parameter of the kernel's command line, in order.
    pub(super) fn parameter(&self, name: &str) -> Vec<String> {
        let line = self.sys.text("/proc/cmdline").unwrap_or_default();
        let values = line
            .split_whitespace()
            .filter_map(|word| word.split_once('='));
        let values = values.filter(|(key, _)| *key == name);
        values.map(|(_, value)| value.to_owned()).collect()
    }

    /// CPUs in a parameter, which may have flags in front: `isolcpus=domain,managed_irq,2-3`.
    pub(super) fn parameter_cpus(&self, name: &str) -> Vec<usize> {
        self.parameter(name)
            .last()
            .map(|list| parse_cpu_list(list))
            .unwrap_or_default()
    }

    /// Flags of the processor, as the first CPU reports them.
    pub(super) fn cpu_flags(&self) -> Result<Vec<String>, Unread> {
        let text = self.sys.text("/proc/cpuinfo")?;
        let flags = text.lines().find(|line| line.starts_with("flags"));
        let flags = flags.ok_or_else(|| Unread::Missing("line `flags` in /proc/cpuinfo".into()))?;
        Ok(flags.split_whitespace().map(str::to_owned).collect())
    }

    /// Whether the CPU reports a hypervisor.
    pub(super) fn is_guest(&self) -> Result<bool, Unread> {
        Ok(self.cpu_flags()?.iter().any(|flag| flag == "hypervisor"))
    }
}

pub(super) const ISOLATED: &str = "/sys/devices/system/cpu/isolated";

/// A file that holds a list of CPUs. No list of the kernel is longer than a page.
pub(super) fn cpus(sys: &Sys, path: &str) -> Result<Vec<usize>, Unread> {
    let list: String = sys.text(path)?.chars().take(4096).collect();
    Ok(parse_cpu_list(&list))
}

fn allowed(sys: &Sys) -> Vec<usize> {
    process::status(sys, "Cpus_allowed_list")
        .map(|list| parse_cpu_list(&list))
        .unwrap_or_default()
}

/// `cpu 3`, `cpus 2-3`
pub(super) fn named(cpus: &[usize]) -> String {
    match cpus {
        [one] => format!("cpu {one}"),
        several => format!("cpus {}", cpu_list(several)),
    }
}
