//! The machines, and which tests run in each. What devices they have, `scripts/qemu-test` knows.

use crate::nic::Nic;
use crate::suite::{self, Test};

/// A machine with two NICs, `a` and `b`, wired back to back.
pub(crate) struct Machine {
    /// As `scripts/qemu-test` calls it: mostly the driver of ours that it is for.
    pub(crate) name: &'static str,
    /// Whose the NICs are when a test begins.
    pub(crate) owner: Owner,
    /// Queues in each direction.
    pub(crate) queues: u16,
    suites: &'static [&'static [Test]],
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
            Self::Program => format!("pci:{},mtu=9000", nic.address),
        })
    }
}

const NIC: &[&[Test]] = &[suite::FRAMES, suite::LINK, suite::LIFE];

pub(crate) const MACHINES: &[Machine] = &[
    Machine {
        name: "af_packet",
        owner: Owner::Kernel,
        queues: 1,
        suites: &[suite::FRAMES, suite::LINK],
    },
    nics("e1000e", 2),
    nics("virtio", 1),
    nics("virtio-packed", 1),
    nics("igb", 2),
];

const fn nics(name: &'static str, queues: u16) -> Machine {
    Machine {
        name,
        owner: Owner::Program,
        queues,
        suites: NIC,
    }
}

impl Machine {
    pub(crate) fn tests(&self) -> impl Iterator<Item = &'static Test> {
        self.suites.iter().copied().flatten()
    }
}
