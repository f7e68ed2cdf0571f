//! `pollux bind` and `pollux unbind` on a made-up sysfs whose attributes answer as the kernel's do.

pub(crate) mod kernel;

use std::path::Path;
use std::process::{Command, Output};

use self::kernel::Kernel;
use crate::support::text;

const A: &str = "0000:03:00.0";
const B: &str = "0000:03:00.1";

fn pollux(args: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_pollux");
    Command::new(program).args(args).output().unwrap()
}

fn run(kernel: &Kernel, args: &[&str]) -> Output {
    pollux(&[args, &["--root", kernel.root()]].concat())
}

/// What a command says that works.
fn done(kernel: &Kernel, args: &[&str]) -> String {
    let output = run(kernel, args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// What a command says that does not, with this status.
fn refused(kernel: &Kernel, args: &[&str], status: i32) -> String {
    let output = run(kernel, args);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{message}");
    message
}

#[test]
fn there_and_back() {
    let kernel = Kernel::new();
    kernel
        .device(A, "ixgbe", "eth1")
        .group(A, 7)
        .driver("vfio-pci");
    assert_eq!(
        done(&kernel, &["bind", A]),
        format!("{A}: ixgbe -> vfio-pci\n")
    );
    assert_eq!(kernel.bound(A).as_deref(), Some("vfio-pci"));
    assert_eq!(
        done(&kernel, &["bind", "03:00.0"]),
        format!("{A}: is bound to vfio-pci already\n")
    );
    assert_eq!(
        done(&kernel, &["unbind", A]),
        format!("{A}: vfio-pci -> ixgbe\n")
    );
    assert_eq!(
        (kernel.bound(A).as_deref(), kernel.overridden(A).as_str()),
        (Some("ixgbe"), "")
    );
    assert_eq!(
        done(&kernel, &["unbind", A]),
        format!("{A}: is bound to ixgbe already\n")
    );
}

#[test]
fn an_interface_names_its_device() {
    let kernel = Kernel::new();
    kernel
        .device(A, "ixgbe", "eth1")
        .group(A, 7)
        .driver("vfio-pci");
    done(&kernel, &["bind", "eth1"]);
    assert_eq!(kernel.bound(A).as_deref(), Some("vfio-pci"));
}

#[test]
fn several_are_bound_or_none() {
    let kernel = Kernel::new();
    kernel
        .device(A, "ixgbe", "eth1")
        .device(B, "ixgbe", "eth2")
        .driver("vfio-pci")
        .group(A, 7)
        .group(B, 7);
    kernel.file(
        "proc/net/route",
        "eth2 00000000 0100000A 0003 0 0 0 00000000 0 0 0",
    );
    let message = refused(&kernel, &["bind", A, B], 1);
    assert!(
        message.contains("eth2 has a default route") && message.contains("--force"),
        "{message}"
    );
    assert_eq!(kernel.bound(A).as_deref(), Some("ixgbe"));
    let output = run(&kernel, &["bind", A]);
    let warning = text(&output.stderr);
    assert!(
        warning.contains(&format!("rest of its IOMMU group is bound too: {B}")),
        "{warning}"
    );
    done(&kernel, &["bind", "--force", A, B]);
    assert_eq!(kernel.bound(B).as_deref(), Some("vfio-pci"));
}

#[test]
fn what_is_missing_is_said() {
    let kernel = Kernel::new();
    kernel.device(A, "ixgbe", "eth1");
    let module = refused(&kernel, &["bind", A], 1);
    assert!(module.contains("modprobe vfio-pci"), "{module}");
    kernel.driver("vfio-pci");
    let iommu = refused(&kernel, &["bind", A], 1);
    assert!(
        iommu.contains("intel_iommu=on iommu=pt") && iommu.contains("enable_unsafe_noiommu_mode"),
        "{iommu}"
    );
    assert_eq!(
        kernel.bound(A).as_deref(),
        Some("ixgbe"),
        "nothing was touched"
    );
    kernel.file(
        "sys/module/vfio/parameters/enable_unsafe_noiommu_mode",
        "Y\n",
    );
    done(&kernel, &["bind", A]);
}

#[test]
fn a_driver_that_does_not_take_the_device_gives_it_back() {
    let kernel = Kernel::new();
    kernel
        .device(A, "ixgbe", "eth1")
        .driver("uio_pci_generic")
        .refuses("uio_pci_generic");
    let message = refused(&kernel, &["bind", A, "--driver", "uio_pci_generic"], 1);
    assert!(
        message.contains("did not take it") && message.contains("bound to ixgbe again"),
        "{message}"
    );
    assert_eq!(
        (kernel.bound(A).as_deref(), kernel.overridden(A).as_str()),
        (Some("ixgbe"), "")
    );
}

#[test]
fn a_device_that_no_driver_knows_is_told() {
    let kernel = Kernel::new();
    kernel
        .device(A, "ixgbe", "eth1")
        .group(A, 7)
        .driver("vfio-pci");
    done(&kernel, &["bind", A]);
    kernel.refuses("ixgbe");
    let message = refused(&kernel, &["unbind", A], 1);
    assert!(message.contains("modprobe pci:v00008086"), "{message}");
}

#[test]
fn wrong_names_are_usage() {
    let kernel = Kernel::new();
    kernel.device(A, "ixgbe", "eth1").driver("vfio-pci");
    for name in ["", "eth9", "../../../etc", "0000:03:00.9", "\u{1b}[2J"] {
        let message = refused(&kernel, &["bind", name], 2);
        assert!(
            message.contains("0000:03:00.0 (eth1)") && !message.contains('\u{1b}'),
            "{message}"
        );
    }
    let message = refused(&kernel, &["bind", "0000:04:00.0"], 1);
    assert!(
        message.contains("there is no PCI device 0000:04:00.0"),
        "{message}"
    );
    let driver = refused(&kernel, &["bind", A, "--driver", "../x"], 1);
    assert!(driver.contains("no PCI driver `../x`"), "{driver}");
    refused(&kernel, &["bind"], 2);
    refused(&kernel, &["unbind"], 2);
    refused(&kernel, &["unbind", "eth9"], 2);
}

#[test]
fn the_machines_own_network_is_safe() {
    let routes = std::fs::read_to_string("/proc/net/route").unwrap_or_default();
    let default = routes
        .lines()
        .find(|line| line.split_whitespace().nth(1) == Some("00000000"));
    let interface = default.and_then(|line| line.split_whitespace().next());
    let is_of_pci = |name: &&str| {
        let path = std::fs::canonicalize(format!("/sys/class/net/{name}")).unwrap_or_default();
        // DEVICE/net/NAME, where a device of virtio is itself one of the PCI bus's.
        path.ancestors().skip(2).take(2).any(|device| {
            let address = device.file_name().unwrap_or_default();
            Path::new("/sys/bus/pci/devices").join(address).exists()
        })
    };
    let Some(name) = interface.filter(is_of_pci) else {
        println!("skipped: no default route through a PCI device");
        return;
    };
    // The driver does not exist, so that nothing happens to the machine even if this test fails.
    let output = pollux(&["bind", name, "--driver", "no-such-driver"]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("has a default route"), "{message}");
}

#[test]
fn the_script_is_the_same_program() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/bind");
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_pollux"))
        .parent()
        .unwrap();
    let path = format!(
        "{}:{}",
        folder.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let run = |args: &[&str]| {
        Command::new(script)
            .args(args)
            .env("PATH", &path)
            .output()
            .unwrap()
    };
    let kernel = Kernel::new();
    kernel
        .device(A, "ixgbe", "eth1")
        .group(A, 7)
        .driver("vfio-pci");
    let output = run(&[A, "--root", kernel.root()]);
    assert_eq!(
        text(&output.stdout),
        format!("{A}: ixgbe -> vfio-pci\n"),
        "{}",
        text(&output.stderr)
    );
    let output = run(&["--unbind", A, "--root", kernel.root()]);
    assert_eq!(text(&output.stdout), format!("{A}: vfio-pci -> ixgbe\n"));
    assert_eq!(
        run(&["eth9", "--root", kernel.root()]).status.code(),
        Some(2)
    );
    assert!(text(&run(&["--help"]).stdout).contains("usage: scripts/bind"));
}
