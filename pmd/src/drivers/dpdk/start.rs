//! Start of EAL: once per process, and it is never stopped.

use std::ffi::{CString, c_char};
use std::fs;
use std::sync::PoisonError;

use pollux_dpdk_sys as dpdk;

use super::eal::{Eal, STATE, State, text_of};
use super::operations::OPERATIONS;

/// Starts EAL, or finds it running. `given`: the arguments of a spec; without, they depend on the
/// machine. `pci`: devargs of a required device on the PCI bus.
///
/// # Errors
/// Why EAL is not available, and the remedy.
pub(super) fn start(given: Option<Vec<String>>, pci: Option<&str>) -> Result<Eal, String> {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    match &*state {
        State::Failed(why) => {
            return Err(format!(
                "{why} (a process can start DPDK once: mend it, and start anew)"
            ));
        }
        State::Running { arguments } => {
            let now = arguments
                .as_ref()
                .map_or("of the program itself".into(), |now| {
                    format!("`{}` of a port that was opened before", now.join(" "))
                });
            if given.is_some() && given != *arguments {
                return Err(format!(
                    "DPDK runs already, with the arguments {now}; give the same to all ports, or \
                     none to the later ones"
                ));
            }
            let without_pci = |words: &Vec<String>| words.iter().any(|word| word == "--no-pci");
            if pci.is_some() && arguments.as_ref().is_some_and(without_pci) {
                return Err(format!(
                    "DPDK runs without PCI, with the arguments {now}; open the PCI device first, \
                     or give eal= without --no-pci to the first port"
                ));
            }
            return Ok(Eal(state));
        }
        State::Untried => {}
    }
    // SAFETY: reads a number that is 0 until EAL runs.
    let arguments = if unsafe { dpdk::rte_lcore_count() } > 0 {
        Ok(None)
    } else {
        let arguments = given.unwrap_or_else(|| chosen(pci));
        init(&arguments).map(|()| Some(arguments))
    };
    // SAFETY: the operations are valid for ever.
    let registered = || match unsafe { dpdk::rte_mempool_register_ops(&raw const OPERATIONS) } {
        0.. => Ok(()),
        error => Err(format!("rte_mempool_register_ops: {}", text_of(error))),
    };
    match arguments.and_then(|arguments| registered().map(|()| arguments)) {
        Ok(arguments) => *state = State::Running { arguments },
        Err(why) => {
            *state = State::Failed(why.clone());
            return Err(why);
        }
    }
    Ok(Eal(state))
}

/// Default arguments: no file on disk, no scan of an unneeded bus, and normal pages if no hugepages
/// are free: the data rooms of buffers belong to the pool in any case.
fn chosen(pci: Option<&str>) -> Vec<String> {
    let mut arguments = vec!["--no-telemetry".to_owned()];
    if free_hugepages() >= 16 << 20 {
        arguments.push("--in-memory".into());
    } else {
        // `--in-memory` requires hugepages; this leaves no file on disk either.
        arguments.extend(["--no-huge", "--no-shconf", "-m", "64"].map(str::to_owned));
    }
    match pci {
        // EAL would otherwise take every device that is bound to a user-space driver.
        Some(devargs) => arguments.extend(["-a".to_owned(), devargs.to_owned()]),
        None => arguments.extend(["--no-pci", "--iova-mode=va"].map(str::to_owned)),
    }
    arguments
}

/// Bytes of hugepages that are neither used nor reserved.
fn free_hugepages() -> u64 {
    let Ok(sizes) = fs::read_dir("/sys/kernel/mm/hugepages") else {
        return 0;
    };
    let free = sizes.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let kib: u64 = name
            .strip_prefix("hugepages-")?
            .strip_suffix("kB")?
            .parse()
            .ok()?;
        let number = |file: &str| -> Option<u64> {
            fs::read_to_string(entry.path().join(file))
                .ok()?
                .trim()
                .parse()
                .ok()
        };
        let pages = number("free_hugepages")?.saturating_sub(number("resv_hugepages")?);
        Some(pages * kib * 1024)
    });
    free.sum()
}

fn init(arguments: &[String]) -> Result<(), String> {
    let affinity = rustix::thread::sched_getaffinity(None).map_err(|error| error.to_string())?;
    let cpus: Vec<_> = (0..rustix::thread::CpuSet::MAX_CPU)
        .filter(|&cpu| affinity.is_set(cpu))
        .map(|cpu| cpu.to_string())
        .collect();
    // One core, without a thread of EAL: the calling thread, on all CPUs that it may use.
    let cores = format!("--lcores=0@({})", cpus.join(","));
    let words = ["pollux".to_owned(), cores]
        .into_iter()
        .chain(arguments.iter().cloned());
    let words: Vec<CString> = words
        .map(CString::new)
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    let mut pointers: Vec<*mut c_char> =
        words.iter().map(|word| word.as_ptr().cast_mut()).collect();
    // SAFETY: before EAL starts only its log can be set up. EAL gets as many pointers to C strings
    // as it is passed, permutes them, and changes no text.
    let used = unsafe {
        dpdk::dpdk_log_to_stderr();
        dpdk::rte_log_set_global_level(dpdk::RTE_LOG_ERR);
        dpdk::rte_eal_init(pointers.len() as i32, pointers.as_mut_ptr())
    };
    // SAFETY: reads a thread-local number.
    let error = unsafe { dpdk::dpdk_errno() };
    // EAL keeps pointers into its arguments.
    std::mem::forget(words);
    // EAL has placed this thread on the CPUs of its core: the same, unless the arguments differ.
    rustix::thread::sched_setaffinity(None, &affinity).map_err(|error| error.to_string())?;
    if used >= 0 {
        return Ok(());
    }
    let hint = match error {
        libc::EACCES | libc::EPERM => {
            "hugepages, or rights to them: run as root and reserve some (scripts/hugepages), or \
             give eal=--no-huge"
        }
        libc::ENOMEM => "too little memory, or too few hugepages: give eal=--no-huge+-m+64",
        libc::EINVAL => "an argument that EAL cannot use",
        _ => "what EAL wrote to stderr says more",
    };
    let arguments = arguments.join(" ");
    Err(format!(
        "DPDK could not be started with `{arguments}`: {}: {hint}",
        text_of(error)
    ))
}
