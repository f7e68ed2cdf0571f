//! Ports as the sub-commands take them from the command line.

use pollux_pmd::{Port, PortError, Probed, Registry};

use crate::exit::Failure;

/// The forms of a port spec, for `--help`.
pub(crate) fn help(registry: &Registry) -> String {
    let forms = registry.usage().map(|line| format!("\n  {line}"));
    format!("Port specs:{}", forms.collect::<String>())
}

/// Opens all ports, or none. A spec that is wrong is reported before one that cannot be opened,
/// so that a typo is never answered with something to repair.
pub(crate) fn open(registry: &Registry, specs: &[String]) -> Result<Vec<Port<Probed>>, Failure> {
    for spec in specs {
        registry.check(spec)?;
    }
    let ports = specs.iter().map(|spec| registry.open(spec));
    Ok(ports.collect::<Result<_, PortError>>()?)
}
