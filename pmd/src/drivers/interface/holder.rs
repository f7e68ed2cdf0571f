//! Finds the program that has a device of the kernel open, for messages: proc_pid_fdinfo(5).

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Describes a process that has such a file open: `process 4711 (testpmd)`, or `another Pollux
/// program, process 4711 (pollux)`. Considers processes in this thread's network namespace, and
/// prefers others to this one, in which only files beyond `own` count. `None` if it cannot be
/// determined: only root sees the files of other users' processes.
pub(in crate::drivers) fn holder(lines: &[&str], own: usize) -> Option<String> {
    let this = std::process::id();
    let here = fs::read_link("/proc/thread-self/ns/net").ok()?;
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut others = numbers.filter(|&process| process != this);
    let found = others.find(|process| {
        let process = format!("/proc/{process}");
        fs::read_link(format!("{process}/ns/net")).is_ok_and(|namespace| namespace == here)
            && files(Path::new(&process), lines) > 0
    });
    let Some(process) = found else {
        let among_ours = files(Path::new("/proc/self"), lines) > own;
        return among_ours.then(|| "this program itself".into());
    };
    // Name of the memory of packet pools.
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let ours = maps.contains("/memfd:pollux");
    let mut words = if ours { "another Pollux program, " } else { "" }.to_string();
    let _ = write!(words, "process {process}");
    if let Ok(name) = fs::read_to_string(format!("/proc/{process}/comm")) {
        let _ = write!(words, " ({})", name.trim_end());
    }
    Some(words)
}

/// Number of open files of a process whose fdinfo has all these lines.
fn files(process: &Path, lines: &[&str]) -> usize {
    let Ok(infos) = fs::read_dir(process.join("fdinfo")) else {
        return 0;
    };
    let texts = infos.filter_map(|info| fs::read_to_string(info.ok()?.path()).ok());
    let all = |text: &String| {
        lines
            .iter()
            .all(|line| text.lines().any(|said| said == *line))
    };
    texts.filter(all).count()
}
