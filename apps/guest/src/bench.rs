//! What a test is given.

use anyhow::{Result, ensure};

use crate::machine::{Machine, Owner};
use crate::nic::{self, Nic};

/// The two NICs, in the hands that the machine has them in.
pub(crate) struct Bench {
    pub(crate) machine: &'static Machine,
    pub(crate) a: Nic,
    pub(crate) b: Nic,
}

impl Bench {
    pub(crate) fn set_up(machine: &'static Machine) -> Result<Self> {
        let nics = nic::all()?;
        ensure!(nics.len() == 2, "the machine has not two NICs: {nics:?}");
        for nic in &nics {
            nic.give_to(machine.owner)?;
            if machine.owner == Owner::Kernel {
                nic.bring_up()?;
            }
        }
        let [a, b] = [nics[0].clone(), nics[1].clone()];
        Ok(Self { machine, a, b })
    }
}
