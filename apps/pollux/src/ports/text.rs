//! Text output of the lists.

use std::io::{self, Write};

use pollux_machine::catalogue::{Catalogue, Drivers, State};

pub(super) fn catalogue(list: &Catalogue, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "Ports")?;
    let width = list
        .ports
        .iter()
        .map(|port| port.spec.len())
        .max()
        .unwrap_or(0);
    for port in &list.ports {
        let state = match port.state {
            State::Usable => "yes",
            State::Unusable => "no",
            State::Form => "form",
        };
        writeln!(out, "  {state:<4}  {:<width$}  {}", port.spec, port.why)?;
    }
    writeln!(out, "\nNetwork controllers on the PCI bus")?;
    if list.pci.is_empty() {
        writeln!(out, "  none")?;
    }
    for device in &list.pci {
        write!(out, "  {}  {}", device.address, device.ids)?;
        if device.name != device.ids {
            write!(out, "  {}", device.name)?;
        }
        if let Some(node) = device.node {
            write!(out, "  node {node}")?;
        }
        if let Some(group) = device.iommu_group {
            write!(out, "  IOMMU group {group}")?;
        }
        if let Some(driver) = &device.driver {
            write!(out, "  {driver}")?;
        }
        if !device.interfaces.is_empty() {
            write!(out, "  {}", device.interfaces.join(", "))?;
        }
        writeln!(out, "\n        {}", device.why)?;
    }
    Ok(())
}

pub(super) fn drivers(list: &Drivers, out: &mut dyn Write) -> io::Result<()> {
    for (i, driver) in list.drivers.iter().enumerate() {
        if i > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}: {}", driver.form, driver.summary)?;
        for option in &driver.options {
            let (key, values) = (option.key, option.values);
            writeln!(out, "  {key}={values} [default: {}]", option.default)?;
            writeln!(out, "      {}", option.text)?;
        }
        for (name, how) in &driver.features {
            writeln!(out, "  {name}: {how}")?;
        }
    }
    Ok(())
}
