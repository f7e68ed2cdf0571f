//! The loop of the switch.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use pollux_mempool::{Mempool, PoolCache};
use pollux_pmd::{Ledger, RxQueue, TxQueue};
use pollux_switch::{Switch, SwitchConfig, SwitchPort, SwitchView};

use super::counters::Control;
use super::plan::CACHE;
use super::rest::{Rest, Resting};

/// The switch, before it runs.
pub struct SwitchLoop {
    switch: Switch,
    cache: PoolCache,
    control: Arc<Control>,
    resting: Resting,
}

impl SwitchLoop {
    /// A switch between lines.
    ///
    /// # Errors
    /// Too many lines, or too few packet buffers.
    pub fn new(
        lines: Vec<SwitchPort>,
        config: &SwitchConfig,
        pool: &Mempool,
        control: Arc<Control>,
        rest: Rest,
    ) -> Result<Self> {
        let cache = pool.cache(CACHE).context("packet buffers of the switch")?;
        Ok(Self {
            switch: Switch::new(lines, config)?,
            cache,
            control,
            resting: Resting::new(rest),
        })
    }

    /// Adds the frames of the switch to the ledger, and returns a reader of its counts.
    pub fn counted_in(&self, ledger: &mut Ledger) -> SwitchView {
        self.switch.add_to(ledger);
        self.switch.view()
    }

    /// Switches frames from the time when all ports are open that are waited for, until the loops have ended; its queues.
    pub fn run(mut self) -> (Vec<RxQueue>, Vec<TxQueue>) {
        while !self.control.all_open.is_set() && !self.control.stop.is_set() {
            self.resting.after(false);
        }
        while !self.control.stop.is_set() {
            let moved = self.switch.poll(&mut self.cache);
            let waits = !self.switch.is_empty();
            self.control.switch_waits.set(waits.into());
            self.resting.after(moved > 0);
        }
        let lines = self.switch.finish(&mut self.cache);
        let (mut rx, mut tx) = (Vec::new(), Vec::new());
        for line in lines {
            rx.extend(line.rx);
            tx.extend(line.tx);
        }
        (rx, tx)
    }
}
