//! Which tests run in each machine. What devices these have, `scripts/qemu-test` knows.

use crate::machine::Machine;
use crate::nic::Owner;
use crate::suite;
use crate::test::Test;

/// A machine and its tests.
pub(crate) struct Plan {
    pub(crate) machine: Machine,
    /// Its own tests, and those that it has with all of its kind.
    own: &'static [&'static [Test]],
    all: &'static [&'static [Test]],
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

pub(crate) const MACHINES: &[Plan] = &[
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
    machine("rtl8139", Owner::Program, 1, &[suite::OUT_OF_TREE]),
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
const fn nic(name: &'static str, queues: u16, own: &'static [&'static [Test]]) -> Plan {
    Plan {
        all: NIC,
        ..machine(name, Owner::Program, queues, own)
    }
}

const fn machine(
    name: &'static str,
    owner: Owner,
    queues: u16,
    own: &'static [&'static [Test]],
) -> Plan {
    Plan {
        machine: Machine {
            name,
            owner,
            queues,
        },
        own,
        all: &[],
    }
}

impl Plan {
    pub(crate) fn tests(&self) -> impl Iterator<Item = &'static Test> {
        self.own.iter().chain(self.all).copied().flatten()
    }
}
