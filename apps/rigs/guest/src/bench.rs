//! What a test is given.

use anyhow::{Result, bail};

use crate::machine::Machine;
use crate::nic::Owner;
use crate::nic::{self, Nic};

/// The two NICs, in the hands that the machine has them in.
pub(crate) struct Bench {
    pub(crate) machine: &'static Machine,
    pub(crate) a: Nic,
    pub(crate) b: Nic,
    /// Those that are the kernel's, where there are more.
    pub(crate) others: Vec<Nic>,
}

impl Bench {
    pub(crate) fn set_up(machine: &'static Machine) -> Result<Self> {
        let nics = nic::all()?;
        let [a, b, others @ ..] = &nics[..] else {
            bail!("the machine has not two NICs: {nics:?}");
        };
        for nic in [a, b] {
            nic.give_to(machine.owner)?;
            if machine.owner == Owner::Kernel {
                nic.bring_up()?;
            }
        }
        let (a, b, others) = (a.clone(), b.clone(), others.to_vec());
        Ok(Self {
            machine,
            a,
            b,
            others,
        })
    }
}
