//! `pollux ports`: every port that could be opened here, and how.

mod catalogue;
mod text;

use std::io;
use std::path::PathBuf;

use pollux_pmd::Registry;
use pollux_program::{Failure, print_with};
use serde::Serialize;

use self::catalogue::{Catalogue, Drivers};
use crate::sys::Sys;

/// Every port that could be opened here, and how.
///
/// Lists the specs of ports: those that can be used as they are, and those that cannot, with the
/// reason. Then the network controllers on the PCI bus, with their drivers. Nothing is opened.
///
/// Example: pollux ports --json
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0, 1 when the list cannot be written, 2 on a wrong option.")]
pub(crate) struct Args {
    /// Print the list as JSON
    ///
    /// {schema: 1, ports: [{spec, driver, state: usable | unusable | form, why}], interfaces:
    /// [{name, up, carrier, mac, mtu, speed_mbit, driver}], pci: [{address, ids, driver, node,
    /// iommu_group, speed_gts, width, interfaces, why}]}; with --drivers {schema: 1, drivers:
    /// [{name, form, summary, options: [{key, values, default, text}], features: {name: yes, or how
    /// far}}]}. What is not known is not there.
    #[arg(long)]
    json: bool,

    /// List the drivers instead: their options, and what they can do
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
    if args.drivers {
        print(&Drivers::of(registry), args.json, text::drivers)?;
    } else {
        let catalogue = Catalogue::of(&Sys::new(&args.root), registry);
        print(&catalogue, args.json, text::catalogue)?;
    }
    Ok(())
}

fn print<T: Serialize>(
    list: &T,
    json: bool,
    text: fn(&T, &mut dyn io::Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    print_with(|out| {
        if json {
            serde_json::to_writer_pretty(&mut *out, list)?;
            writeln!(out)
        } else {
            text(list, out)
        }
    })
    .map(drop)
}
