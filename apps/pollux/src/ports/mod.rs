//! `pollux ports`: lists the ports that can be opened on this machine.

mod text;

use std::path::PathBuf;

use pollux_app::{Failure, ReportOptions};
use pollux_pmd::Registry;

use pollux_machine::Sys;
use pollux_machine::catalogue::{Catalogue, Drivers};

/// List the ports that can be opened on this machine
///
/// Lists the specs of ports: usable ones, and unusable ones with the reason. Then the network
/// controllers on the PCI bus, with their drivers. Nothing is opened.
///
/// As JSON: {schema: 1, ports: [{spec, driver, state: usable | unusable | form, why}], interfaces:
/// [{name, up, carrier, mac, mtu, speed_mbit, driver}], pci: [{address, ids, driver, node,
/// iommu_group, speed_gts, width, interfaces, why}]}; with --drivers {schema: 1, drivers:
/// [{name, form, summary, options: [{key, values, default, text}], features: {name: yes, or how
/// far}}]}. What is not known is not there.
///
/// Example: pollux ports --json
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0, 1 when the list cannot be written, 2 on a wrong option.")]
pub(crate) struct Args {
    #[command(flatten)]
    report: ReportOptions,

    /// List the drivers instead, with their options and features
    #[arg(long)]
    drivers: bool,

    /// Read /proc and /sys below DIR instead: the host's, seen from a container, or a copy
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/",
        hide_default_value = true
    )]
    root: PathBuf,
}

/// Prints the list.
pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    let reports = args.report.outputs()?.ready()?;
    if args.drivers {
        let drivers = Drivers::of(registry);
        reports.tell(&drivers, |out| text::drivers(&drivers, out))?;
    } else {
        let catalogue = Catalogue::of(&Sys::new(&args.root), registry);
        reports.tell(&catalogue, |out| text::catalogue(&catalogue, out))?;
    }
    Ok(())
}
