//! The model's registers: virtio 1.2 sections 4.1.4 and 5.1.4.

use super::windows::BAR;
use super::{VirtioNet, bit};
use crate::fake::World;

/// Bytes of a number, from one of them on, `width` long.
fn part(bytes: &[u8], at: usize, width: usize) -> u32 {
    let byte = |i| u32::from(bytes.get(at + i).copied().unwrap_or(0));
    (0..width).map(|i| byte(i) << (8 * i)).sum()
}

impl VirtioNet {
    pub(super) fn read_register(&mut self, bar: u8, at: usize, width: usize) -> u32 {
        match (bar, at) {
            (BAR, 0..0x1000) => part(&self.common(), at, width),
            (BAR, 0x2000..0x3000) => {
                if self.faults.restless {
                    self.generation = self.generation.wrapping_add(1);
                }
                part(&self.specific(), at - 0x2000, width)
            }
            _ => 0,
        }
    }

    fn common(&self) -> Vec<u8> {
        let half = |features: u64, select: u32| match select {
            0 => features as u32,
            1 => (features >> 32) as u32,
            _ => 0,
        };
        let queue = self.queues.get(usize::from(self.queue_select));
        let (size, enabled) = queue.map_or((0, false), |queue| (queue.size, queue.enabled));
        let vector = queue.map_or(u16::MAX, |queue| queue.vector);
        let areas = queue.map_or([0; 3], |queue| queue.areas);
        let mut bytes = Vec::with_capacity(0x3c);
        bytes.extend(self.device_feature_select.to_le_bytes());
        bytes.extend(half(self.offered, self.device_feature_select).to_le_bytes());
        bytes.extend(self.driver_feature_select.to_le_bytes());
        bytes.extend(half(self.accepted, self.driver_feature_select).to_le_bytes());
        // Of the configuration: it is not asked for.
        bytes.extend(u16::MAX.to_le_bytes());
        bytes.extend((self.queues.len() as u16).to_le_bytes());
        bytes.extend([self.status | self.trouble, self.generation]);
        bytes.extend(self.queue_select.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(vector.to_le_bytes());
        bytes.extend(u16::from(enabled).to_le_bytes());
        bytes.extend(
            self.queue_select
                .wrapping_mul(self.notify_step)
                .to_le_bytes(),
        );
        bytes.extend(areas.iter().flat_map(|area| area.to_le_bytes()));
        bytes
    }

    fn specific(&self) -> Vec<u8> {
        let mut bytes = self.mac.to_vec();
        bytes.extend(u16::from(self.up).to_le_bytes());
        bytes.extend(self.max_pairs.to_le_bytes());
        bytes.extend(self.mtu.to_le_bytes());
        bytes
    }

    pub(super) fn write_register(
        &mut self,
        world: &mut World,
        bar: u8,
        at: usize,
        width: usize,
        value: u32,
    ) {
        let select = usize::from(self.queue_select);
        match (bar, at, width) {
            (BAR, 0x00, 4) => self.device_feature_select = value,
            (BAR, 0x08, 4) => self.driver_feature_select = value,
            (BAR, 0x0c, 4) => self.accept(value),
            (BAR, 0x14, 1) => self.set_status(value as u8),
            (BAR, 0x16, 2) => self.queue_select = value as u16,
            (BAR, 0x18 | 0x1a | 0x1c, 2) | (BAR, 0x20..0x38, 4) if self.status & 8 == 0 => {
                self.blame("a queue was set up before the features were agreed on");
            }
            (BAR, 0x18, 2) => {
                let most = self.max_size;
                if value == 0 || value > most.into() {
                    self.blame(format!("a queue of {value}, where {most} are the most"));
                }
                if let Some(queue) = self.queues.get_mut(select) {
                    queue.size = value as u16;
                }
            }
            (BAR, 0x1a, 2) => {
                let there = value < self.vectors.into();
                if let Some(queue) = self.queues.get_mut(select) {
                    queue.vector = if there { value as u16 } else { u16::MAX };
                }
            }
            (BAR, 0x1c, 2) => {
                if let Some(queue) = self.queues.get_mut(select) {
                    queue.enabled = value == 1;
                }
            }
            (BAR, 0x20..0x38, 4) => {
                if let Some(queue) = self.queues.get_mut(select) {
                    let area = &mut queue.areas[(at - 0x20) / 8];
                    let (shift, keep) = match at % 8 {
                        0 => (0, !u64::from(u32::MAX)),
                        _ => (32, u64::from(u32::MAX)),
                    };
                    *area = *area & keep | u64::from(value) << shift;
                }
            }
            (BAR, 0x3000..0x4000, 2) => self.notified(world, value as u16),
            _ => self.blame(format!("{value:#x} was written to {at:#x} of BAR {bar}")),
        }
    }

    fn accept(&mut self, half: u32) {
        let (shift, keep) = match self.driver_feature_select {
            0 => (0, !u64::from(u32::MAX)),
            _ => (32, u64::from(u32::MAX)),
        };
        self.accepted = self.accepted & keep | u64::from(half) << shift;
        if self.status & 8 != 0 {
            self.blame("features were changed after they had been agreed on");
        }
    }

    fn set_status(&mut self, status: u8) {
        if status == 0 {
            if !self.faults.never_rests {
                self.clear();
            }
            return;
        }
        if self.status & !status & !self.trouble != 0 {
            self.blame("bits of the status were cleared");
        }
        let mut status = status;
        if status & !self.status & 8 != 0 {
            let control_rx = bit::CONTROL_RX | bit::SEVERAL_QUEUES;
            let alone = self.has(control_rx) && !self.has(bit::CONTROL);
            let unknown = self.accepted & !self.offered != 0;
            if alone || unknown {
                self.blame("features that are not offered, or not without another");
            }
            if self.faults.refuses || alone || unknown {
                status &= !8;
            }
        }
        if status & 4 != 0 && status & 8 == 0 {
            self.blame("it was started before the features were agreed on");
        }
        self.status = status;
        self.start_queues();
    }

    fn notified(&mut self, world: &mut World, queue: u16) {
        self.notifications += 1;
        if !self.is_running() {
            self.blame(format!("queue {queue} was notified while not started"));
        }
        self.work(world, queue);
    }

    /// What a device writes into its areas when the driver is ready.
    fn start_queues(&mut self) {
        let packed = self.has(bit::PACKED);
        let mut wrong = Vec::new();
        if self.status & 4 != 0 {
            for (number, queue) in self.queues.iter().enumerate() {
                if queue.enabled
                    && let Err(what) = queue.check(packed)
                {
                    wrong.push(format!("queue {number}: {what}"));
                }
            }
        }
        self.violations.extend(wrong);
    }
}
