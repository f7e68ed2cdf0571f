//! The machines, and which tests run in each. What devices they have, `scripts/qemu-test` knows.

use pollux_pmd::bus::pci::Sysfs;

use crate::nic::Nic;
use crate::suite::{self, Test};

/// A machine with two NICs, `a` and `b`, wired back to back; or each to one of the kernel's.
pub(crate) struct Machine {
    /// As `scripts/qemu-test` calls it: mostly the driver of ours that it is for.
    pub(crate) name: &'static str,
    /// Whose the NICs are when a test begins.
    pub(crate) owner: Owner,
    /// Queues in each direction.
    pub(crate) queues: u16,
    /// Its own tests, and those that it has with all of its kind.
    own: &'static [&'static [Test]],
    all: &'static [&'static [Test]],
}

/// Who has a NIC.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A driver of the kernel; our port is on its interface.
    Kernel,
    /// A program: the NIC is bound to vfio-pci.
    Program,
}

impl Owner {
    /// The port on a NIC that is in these hands.
    pub(crate) fn spec(self, nic: &Nic) -> anyhow::Result<String> {
        Ok(match self {
            Self::Kernel => format!("af_packet:{}", nic.interface()?),
            // In a machine without an IOMMU that is meant.
            Self::Program if Sysfs::default().allows_no_iommu() => {
                format!("pci:{},mtu=9000,noiommu=on", nic.address)
            }
            Self::Program => format!("pci:{},mtu=9000", nic.address),
        })
    }
}

/// What every driver of a NIC must do.
const NIC: &[&[Test]] = &[
    suite::FRAMES,
    suite::QUEUES,
    suite::FILTERS,
    suite::LINK,
    suite::TRIGGER,
    suite::KERNEL,
    suite::SLEEP,
    suite::LIFE,
    suite::UNPLUG,
];

pub(crate) const MACHINES: &[Machine] = &[
    nic(
        "e1000e",
        2,
        &[
            suite::DEVICE,
            suite::LARGE_PAGE,
            suite::FULL,
            suite::OFFLOAD,
        ],
    ),
    nic("virtio", 1, &[suite::FULL]),
    nic("virtio-packed", 1, &[suite::FULL]),
    // QEMU's 82576 sets no counter when a frame finds no descriptor (`igb_receive_internal`): what
    // it loses so cannot be in a ledger.
    nic("igb", 2, &[suite::OVERRUN, suite::OFFLOAD]),
    machine(
        "af_packet",
        Owner::Kernel,
        1,
        &[suite::FILTERS, suite::LINK, suite::SLEEP],
    ),
    machine(
        "virtio-queues",
        Owner::Program,
        2,
        &[suite::QUEUES, suite::FILTERS, suite::OFFLOAD],
    ),
    machine("forward", Owner::Program, 1, &[suite::FORWARD]),
    machine(
        "sriov",
        Owner::Program,
        1,
        &[suite::FUNCTIONS, suite::SRIOV],
    ),
    machine("refusals", Owner::Program, 1, &[suite::REFUSALS]),
    machine("no-iommu", Owner::Kernel, 1, &[suite::NO_IOMMU]),
    machine(
        "unprotected",
        Owner::Program,
        2,
        &[
            suite::LARGE_PAGE,
            suite::QUEUES,
            suite::SLEEP,
            suite::UNPROTECTED,
        ],
    ),
    machine(
        "iommufd",
        Owner::Program,
        2,
        &[
            suite::OWN_FILES,
            suite::DEVICE,
            suite::QUEUES,
            suite::SLEEP,
            suite::LIFE,
            suite::UNPLUG,
        ],
    ),
];

/// One for a driver of ours for a NIC.
const fn nic(name: &'static str, queues: u16, own: &'static [&'static [Test]]) -> Machine {
    Machine {
        all: NIC,
        ..machine(name, Owner::Program, queues, own)
    }
}

const fn machine(
    name: &'static str,
    owner: Owner,
    queues: u16,
    own: &'static [&'static [Test]],
) -> Machine {
    Machine {
        name,
        owner,
        queues,
        own,
        all: &[],
    }
}

impl Machine {
    pub(crate) fn tests(&self) -> impl Iterator<Item = &'static Test> {
        self.own.iter().chain(self.all).copied().flatten()
    }
}
