//! EAL arguments in a spec: DPDK's environment options.

/// EAL options that are valid in a process with its own threads. Options of cores are excluded,
/// since the program places its threads itself; so are those that print something and exit.
const ALLOWED: &[&str] = &[
    "-a",
    "-b",
    "-d",
    "-m",
    "-n",
    "-r",
    "--allow",
    "--base-virtaddr",
    "--block",
    "--create-uio-dev",
    "--file-prefix",
    "--force-max-simd-bitwidth",
    "--huge-dir",
    "--huge-unlink",
    "--huge-worker-stack",
    "--in-memory",
    "--iova-mode",
    "--legacy-mem",
    "--log-level",
    "--match-allocations",
    "--no-hpet",
    "--no-huge",
    "--no-pci",
    "--no-shconf",
    "--no-telemetry",
    "--single-file-segments",
    "--socket-limit",
    "--socket-mem",
    "--syslog",
    "--telemetry",
    "--vdev",
    "--vfio-intr",
    "--vfio-vf-token",
    "--vmware-tsc-map",
];

/// Parses the value of `eal=`: arguments separated by `+`, in which `;` replaces the comma.
///
/// # Errors
/// An invalid argument. EAL itself would print its help and could not be started any more.
pub(super) fn parse(text: &str) -> Result<Vec<String>, String> {
    let arguments: Vec<String> = text.split('+').map(|word| word.replace(';', ",")).collect();
    let mut after_option = false;
    for argument in &arguments {
        if !argument.starts_with('-') {
            if !after_option || argument.is_empty() || argument.contains('\0') {
                return Err(format!("`{argument}` follows no option of EAL"));
            }
            after_option = false;
            continue;
        }
        let name = argument
            .split_once('=')
            .map_or(&**argument, |(name, _)| name);
        // `-m64` is `-m` and its value.
        let short = (!name.starts_with("--")).then(|| name.get(..2)).flatten();
        if !ALLOWED.contains(&short.unwrap_or(name)) || argument.contains('\0') {
            return Err(format!(
                "EAL has no option `{name}` that a port may set (cores and threads are the \
                 program's); there are: {}",
                ALLOWED.join(" ")
            ));
        }
        after_option = !argument.contains('=') && short.is_none_or(|short| short == name);
    }
    Ok(arguments)
}
