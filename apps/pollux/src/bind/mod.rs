//! `pollux bind` and `pollux unbind`: assign PCI devices to a user-space I/O driver, and return
//! them to their kernel driver.
//!
//! The attribute driver_override of the device selects the driver (the kernel's
//! Documentation/ABI/testing/sysfs-bus-pci). No state is stored: without the attribute, the kernel
//! selects the driver of the device as at boot.

mod error;
mod in_use;

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pollux_app::{Failure, print, user_message};
use pollux_pmd::bus::pci::Address;

use self::error::BindError;
use pollux_machine::pci::{self, Function};
use pollux_machine::{Sys, net};

const PROBE: &str = "/sys/bus/pci/drivers_probe";

/// Bind PCI devices to a driver for userspace programs
///
/// DEVICE is an address (0000:03:00.0, or 03:00.0) or the name of a network interface. All devices
/// are checked before the first is touched. A device that carries the machine's network is refused:
/// one with a route, or with an address that is not link-local, by itself or under a bridge, a bond
/// or a VLAN. So is one that the kernel uses for anything else.
///
/// Modules are not loaded: a message names the missing one.
///
/// Example: pollux bind 0000:03:00.0
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 when all devices are bound as asked, 1 when one is not, 2 on a wrong option or name."
)]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,

    /// Driver to bind to
    #[arg(long, value_name = "NAME", default_value = "vfio-pci")]
    driver: String,

    /// Also bind a device that carries the machine's network, or is otherwise in use
    #[arg(long)]
    force: bool,
}

/// Return PCI devices to the kernel's driver
///
/// Waits for a program that has the device open.
///
/// Example: pollux unbind 0000:03:00.0
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 when all devices have a driver of the kernel, 1 when one has not, 2 on a wrong option or name."
)]
pub(crate) struct UnbindArgs {
    #[command(flatten)]
    target: Target,
}

#[derive(clap::Args)]
struct Target {
    /// Devices, by address or interface
    #[arg(value_name = "DEVICE", required = true)]
    devices: Vec<String>,

    /// Use /proc and /sys below DIR instead: the host's, from inside a container
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/",
        hide_default_value = true
    )]
    root: PathBuf,
}

impl Target {
    fn find(&self) -> Result<(Sys, Vec<Function>), BindError> {
        let sys = Sys::new(&self.root);
        let found: Result<_, _> = self.devices.iter().map(|name| find(&sys, name)).collect();
        Ok((sys, found?))
    }
}

/// Runs `pollux bind`.
pub(crate) fn bind(args: &Args) -> Result<(), Failure> {
    let (sys, devices) = args.target.find()?;
    let others: Vec<_> = devices
        .iter()
        .filter(|device| device.driver.as_deref() != Some(&args.driver))
        .collect();
    for device in &others {
        check(&sys, device, &args.driver, args.force)?;
    }
    for device in &devices {
        give(&sys, device, &args.driver)?;
        let kept_back = device.kept_back(&pci::bus(&sys));
        let list: Vec<_> = kept_back
            .iter()
            .map(|other| other.address.to_string())
            .collect();
        if args.driver == "vfio-pci" && !list.is_empty() {
            user_message(format_args!(
                "warning: {} cannot be used until the rest of its IOMMU group is bound too: {}",
                device.address,
                list.join(" ")
            ));
        }
    }
    Ok(())
}

/// Runs `pollux unbind`.
pub(crate) fn unbind(args: &UnbindArgs) -> Result<(), Failure> {
    let (sys, devices) = args.target.find()?;
    for device in &devices {
        take_back(&sys, device)?;
    }
    Ok(())
}

/// The device with that address, or with an interface of that name.
fn find(sys: &Sys, name: &str) -> Result<Function, BindError> {
    if let Ok(address) = name.parse() {
        let device = pci::bus(sys).function(address);
        return device.ok_or(BindError::NoSuchDevice(address));
    }
    let mut devices = pci::network(sys);
    let has_it = |device: &Function| device.interfaces.iter().any(|interface| interface == name);
    match devices.iter().position(has_it) {
        Some(i) => Ok(devices.swap_remove(i)),
        None => Err(BindError::NoSuchName {
            name: name.escape_debug().to_string(),
            known: known(sys, &devices),
        }),
    }
}

fn known(sys: &Sys, devices: &[Function]) -> String {
    let of_pci = |device: &Function| match device.interfaces.as_slice() {
        [] => device.address.to_string(),
        names => format!("{} ({})", device.address, names.join(", ")),
    };
    let list: Vec<_> = devices.iter().map(of_pci).collect();
    if list.is_empty() {
        let software = net::interfaces(sys).len();
        return format!(
            "no network controllers on the PCI bus ({software} interfaces are of software)"
        );
    }
    list.join(", ")
}

/// Checks that need no access to the device.
fn check(sys: &Sys, device: &Function, driver: &str, force: bool) -> Result<(), BindError> {
    let address = device.address;
    if !force && let Some(why) = in_use::reason(sys, device) {
        return Err(BindError::Refused { address, why });
    }
    let bus = pci::bus(sys);
    if !bus.has_driver(driver) {
        return Err(BindError::NoSuchDriver(driver.escape_debug().to_string()));
    }
    if driver == "vfio-pci" && device.group.is_none() && !bus.allows_no_iommu() {
        return Err(BindError::NoIommu(address));
    }
    Ok(())
}

/// Prints the result. An output error does not stop the remaining work.
fn tell(done: fmt::Arguments<'_>) {
    if let Err(error) = print(format_args!("{done}\n")) {
        user_message(format_args!("warning: {error:#}"));
    }
}

/// Binds a device to a driver; a device with that driver is left alone.
fn give(sys: &Sys, device: &Function, driver: &str) -> Result<(), BindError> {
    let Function {
        address,
        driver: before,
        ..
    } = device;
    if before.as_deref() == Some(driver) {
        tell(format_args!("{address}: is bound to {driver} already"));
        return Ok(());
    }
    override_driver(sys, *address, driver)?;
    let taken = rebind(sys, device).map(|now| now.as_deref() == Some(driver));
    if !matches!(taken, Ok(true)) {
        // The device is returned to its former driver; the first error is the one reported.
        let now = put_back(sys, *address);
        taken?;
        return Err(BindError::NotTaken {
            address: *address,
            driver: driver.into(),
            now: match now {
                Ok(Some(now)) => format!("bound to {now} again"),
                _ => "without a driver".into(),
            },
        });
    }
    tell(format_args!(
        "{address}: {} -> {driver}",
        before.as_deref().unwrap_or("no driver")
    ));
    Ok(())
}

/// The error after the requested driver has not taken the device.
fn put_back(sys: &Sys, address: Address) -> Result<Option<String>, BindError> {
    override_driver(sys, address, "")?;
    match pci::bus(sys).function(address) {
        Some(device) if device.driver.is_none() => rebind(sys, &device),
        still => Ok(still.and_then(|device| device.driver)),
    }
}

/// Lets the kernel select the driver of a device again.
fn take_back(sys: &Sys, device: &Function) -> Result<(), BindError> {
    let Function {
        address,
        driver: before,
        ..
    } = device;
    if let Some(driver) = before
        && !device.is_for_programs()
    {
        tell(format_args!("{address}: is bound to {driver} already"));
        return Ok(());
    }
    override_driver(sys, *address, "")?;
    match rebind(sys, device)? {
        Some(driver) if !is_for_programs(sys, *address) => {
            tell(format_args!(
                "{address}: {} -> {driver}",
                before.as_deref().unwrap_or("no driver")
            ));
            Ok(())
        }
        _ => Err(BindError::NoKernelDriver {
            address: *address,
            modalias: sys
                .text(&format!("{}/modalias", pci::folder(*address)))
                .unwrap_or_default(),
        }),
    }
}

fn is_for_programs(sys: &Sys, address: Address) -> bool {
    let device = pci::bus(sys).function(address);
    device.is_some_and(|device| device.is_for_programs())
}

/// Sets the only driver that may take the device; `None` allows every driver that supports it.
fn override_driver(sys: &Sys, address: Address, driver: &str) -> Result<(), BindError> {
    let path = format!("{}/driver_override", pci::folder(address));
    write(
        sys,
        address,
        &path,
        &format!("{driver}\n"),
        "choose the driver",
    )
}

/// Unbinds the device, makes the kernel probe drivers again, and returns the new driver.
fn rebind(sys: &Sys, device: &Function) -> Result<Option<String>, BindError> {
    /// A driver may set a device up slowly, on a thread of its own.
    const PATIENCE: Duration = Duration::from_secs(2);
    let Function { address, .. } = device;
    let link = format!("{}/driver", pci::folder(*address));
    let wait = |bound: bool| {
        let began = Instant::now();
        while sys.link(&link).is_some() != bound && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    if device.driver.is_some() {
        write(
            sys,
            *address,
            &format!("{link}/unbind"),
            &address.to_string(),
            "take it from its driver",
        )?;
        wait(false);
    }
    write(
        sys,
        *address,
        PROBE,
        &address.to_string(),
        "have the kernel look for a driver",
    )?;
    wait(true);
    Ok(sys.link(&link))
}

fn write(sys: &Sys, address: Address, path: &str, text: &str, what: &str) -> Result<(), BindError> {
    sys.write(path, text).map_err(|source| BindError::System {
        address,
        what: format!("{what} ({path})"),
        source,
    })
}
