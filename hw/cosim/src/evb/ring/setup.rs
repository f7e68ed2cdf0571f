//! Reset and set-up of a ring, before its first run and between two.

use pollux_card_model::evb_registers::evb;
use pollux_farm::scheduler::Discipline;

use super::{ADDRESS_STEP, PATIENCE, Ring};
use crate::evb::model::bits;
use crate::evb::setting::Setting;

impl Ring {
    pub(super) fn reset(&mut self) {
        self.inputs.reset = 1;
        self.raw(8);
        self.inputs.reset = 0;
        self.raw(2000);
    }

    /// A run may be under way. Its triggers end, its transfers stay; the rest goes on until the set-up.
    pub(super) fn set_up(&mut self, setting: &Setting) -> anyhow::Result<()> {
        self.set(evb::TRIGGER_ENABLE.at, 0)?;
        self.inputs.slot = setting.slot;
        self.inputs.bypass_above = setting.bypass_above;
        for descriptor in 0..setting.descriptors() {
            self.inputs.table_valid = 1;
            self.inputs.descriptor = descriptor as u16;
            self.inputs.address = descriptor as u64 * ADDRESS_STEP;
            self.raw(1);
        }
        self.inputs.table_valid = 0;
        for (node, &column) in setting.column_of.iter().enumerate() {
            self.set(evb::NODE_COLUMN.of(node), column.into())?;
        }
        if let Discipline::Weights(weights) = &setting.discipline {
            for (column, &weight) in weights.iter().enumerate() {
                self.set(evb::COLUMN_WEIGHT.of(column), weight.into())?;
            }
        }
        let partition = (setting.partition_of.iter().enumerate())
            .fold(0, |mask, (column, &p)| mask | u32::from(p) << column);
        let discipline = match setting.discipline {
            Discipline::Turns => 0,
            Discipline::Weights(_) => 1,
            Discipline::QueueLength => 2,
        };
        for (register, value) in [
            (evb::RUN, setting.run),
            (evb::NODES, setting.column_of.len() as u32),
            (evb::DESCRIPTORS, setting.descriptors() as u32),
            (evb::FEEDERS, setting.members()),
            (evb::DISCIPLINE, discipline),
            (evb::PARTITION, partition),
            (evb::LOOPS, setting.loops.into()),
            (evb::RING_TIMEOUT, setting.timeout),
            (evb::PENDING_LIMIT, setting.pending as u32),
            (evb::TRIGGER_PERIOD, setting.period as u32),
            (evb::TRIGGER_SELECT, setting.source),
            (evb::ENABLE, 0),
            (evb::MODE, 0),
            (evb::SETUP, 1),
        ] {
            self.set(register.at, value)?;
        }
        for _ in 0..PATIENCE {
            self.raw(1);
            if self.outputs.scheduler & bits::BUSY == 0 {
                break;
            }
        }
        self.former = self.outputs.transfers;
        self.transfers = std::array::from_fn(|n: usize| self.is_former(n));
        // The software's scheduler begins with this.
        self.changes = true;
        self.write(evb::MODE.at, setting.wait.into())?;
        self.write(evb::ENABLE.at, 1)?;
        self.write(evb::TRIGGER_ENABLE.at, 1)?;
        self.changes = false;
        Ok(())
    }

    /// Cycles in which nothing is compared.
    fn raw(&mut self, cycles: u32) {
        for _ in 0..cycles {
            self.model.cycle(&self.inputs, &mut self.outputs);
        }
    }

    /// Writes a register; nothing is compared.
    fn set(&mut self, at: usize, value: u32) -> anyhow::Result<()> {
        self.inputs.write = 1;
        self.inputs.register_address = at as u16;
        self.inputs.write_data = value;
        for _ in 0..PATIENCE {
            self.raw(1);
            if self.outputs.scheduler & bits::WRITTEN != 0 {
                self.inputs.write = 0;
                self.raw(4);
                return Ok(());
            }
        }
        anyhow::bail!("a write of register {at:#x} is not taken")
    }

    /// Writes a register after the set-up.
    fn write(&mut self, at: usize, value: u32) -> anyhow::Result<()> {
        self.writes.push_back((at, value));
        for _ in 0..PATIENCE {
            self.step();
            if self.writes.is_empty() {
                self.raw(4);
                return Ok(());
            }
        }
        anyhow::bail!("a write of register {at:#x} is not taken")
    }
}
