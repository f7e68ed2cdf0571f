//! Errors of `bind` and `unbind`, with remedies.

use std::io;

use pollux_app::Failure;
use pollux_pmd::bus::pci::Address;

use pollux_machine::pci::ALLOW_NO_IOMMU;

/// Reason why a device cannot be given to another driver.
#[derive(Debug, thiserror::Error)]
pub(super) enum BindError {
    #[error(
        "`{name}` is neither the address of a PCI device (0000:03:00.0, 03:00.0) nor a network \
         interface of one; there are: {known}"
    )]
    NoSuchName { name: String, known: String },
    #[error("there is no PCI device {0}; `pollux ports` lists the available ones")]
    NoSuchDevice(Address),
    #[error("{address} {why}; --force binds it anyway")]
    Refused { address: Address, why: String },
    #[error("the kernel has no PCI driver `{0}` loaded: modprobe {0}")]
    NoSuchDriver(String),
    #[error(
        "{0} has no IOMMU group, so that vfio-pci would refuse it: switch the IOMMU on (boot with \
         intel_iommu=on iommu=pt, or iommu=pt on AMD; in a guest, give it one), or accept that the \
         device can then write anywhere in memory: modprobe vfio; echo Y > {ALLOW_NO_IOMMU}"
    )]
    NoIommu(Address),
    #[error("{address}: cannot {what}: {source}{}", hint(.source))]
    System {
        address: Address,
        what: String,
        source: io::Error,
    },
    #[error("{address}: {driver} did not take it (see dmesg); it is {now}")]
    NotTaken {
        address: Address,
        driver: String,
        now: String,
    },
    #[error("{address}: no driver of the kernel took it: modprobe {modalias}, then try again")]
    NoKernelDriver { address: Address, modalias: String },
}

fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => " (run it as root)",
        io::ErrorKind::ReadOnlyFilesystem => " (this container may only read /sys; run it outside)",
        _ => "",
    }
}

impl From<BindError> for Failure {
    fn from(error: BindError) -> Self {
        match error {
            BindError::NoSuchName { .. } => Self::usage(error),
            _ => Self::Run(error.into()),
        }
    }
}
