//! Free receive buffers in queues by column, and the choice of the next one (thesis, III.B.2 and
//! III.B.4).

use std::collections::VecDeque;

use super::config::{Config, Discipline, Mode};
use crate::topology::Descriptor;

/// A free receive buffer that was taken from the queue of its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// The column.
    pub(super) column: u8,
    /// The receive buffer.
    pub(super) descriptor: Descriptor,
}

#[derive(Debug)]
struct Partition {
    columns: u64,
    /// The column that is asked first.
    turn: u8,
}

/// Queues of free receive buffers by column, first come first served, and the discipline that
/// chooses among the columns.
///
/// Of several columns that have nodes, the one of the last dispatch is no candidate. The
/// partitions come in turn, and a partition's columns by the discipline.
#[derive(Debug)]
pub(super) struct Columns {
    queues: Box<[VecDeque<Descriptor>]>,
    partitions: Box<[Partition]>,
    next_partition: usize,
    mode: Mode,
    discipline: Discipline,
    /// How far each column is behind its share.
    balance: Box<[i64]>,
    /// Columns with free buffers.
    free: u64,
    /// Columns with nodes that take part.
    live: u64,
    last: Option<u8>,
    passed: u64,
}

fn bit(column: u8) -> u64 {
    1 << (column % 64)
}

fn columns_of(mut mask: u64) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let column = mask.trailing_zeros() as u8;
        mask &= mask.wrapping_sub(1);
        (column < 64).then_some(column)
    })
}

impl Columns {
    /// Empty queues; every column that has a node takes part.
    pub(super) fn new(config: &Config) -> Self {
        let topology = &config.topology;
        let columns = topology.columns();
        let mut nodes_in = vec![0; columns];
        for node in 0..topology.nodes() {
            if let Some(column) = topology.column_of(node as u16) {
                nodes_in[usize::from(column)] += 1;
            }
        }
        let queue = |&nodes: &usize| VecDeque::with_capacity(nodes * topology.buffers());
        let partition_of: Box<[u8]> = match &config.partition_of[..] {
            [] => vec![0; columns].into(),
            given => given.into(),
        };
        let count = partition_of.iter().max().map_or(1, |&p| usize::from(p) + 1);
        let of = |p: usize| {
            let mine = |&c: &usize| usize::from(partition_of[c]) == p;
            (0..columns)
                .filter(mine)
                .fold(0, |mask, c| mask | bit(c as u8))
        };
        let partition = |p| Partition {
            columns: of(p),
            turn: 0,
        };
        let has_node = |&(_, &nodes): &(usize, &usize)| nodes > 0;
        Self {
            queues: nodes_in.iter().map(queue).collect(),
            partitions: (0..count).map(partition).collect(),
            next_partition: 0,
            mode: config.mode,
            discipline: config.discipline.clone(),
            balance: vec![0; columns].into(),
            free: 0,
            live: (nodes_in.iter().enumerate())
                .filter(has_node)
                .fold(0, |mask, (c, _)| mask | bit(c as u8)),
            last: None,
            passed: 0,
        }
    }

    /// Adds a free buffer at the end of its column's queue.
    pub(super) fn push(&mut self, choice: Choice) {
        if let Some(queue) = self.queues.get_mut(usize::from(choice.column)) {
            queue.push_back(choice.descriptor);
            self.free |= bit(choice.column);
        }
    }

    /// Returns a buffer that was taken and not used to the front of its column's queue.
    pub(super) fn push_front(&mut self, choice: Choice) {
        if let Some(queue) = self.queues.get_mut(usize::from(choice.column)) {
            queue.push_front(choice.descriptor);
            self.free |= bit(choice.column);
        }
    }

    /// Takes the next buffer, if the discipline grants one. Its column is taken as used last only
    /// at [`Self::dispatched`].
    pub(super) fn take(&mut self) -> Option<Choice> {
        let (partition, column) = self.choose()?;
        let queue = self.queues.get_mut(usize::from(column))?;
        let descriptor = queue.pop_front()?;
        if queue.is_empty() {
            self.free &= !bit(column);
        }
        self.settle(partition, column);
        Some(Choice { column, descriptor })
    }

    /// An event goes to the column: the next one does not, if there are others.
    pub(super) fn dispatched(&mut self, column: u8) {
        self.last = Some(column);
    }

    /// Whether an event may go to the column next.
    pub(super) fn may_follow(&self, column: u8) -> bool {
        self.last != Some(column) || self.live & !bit(column) == 0
    }

    /// Takes a column out, or in again.
    pub(super) fn set_live(&mut self, column: u8, live: bool) {
        if live {
            self.live |= bit(column);
        } else {
            self.live &= !bit(column);
        }
    }

    /// Removes the buffers of a column that are not kept.
    pub(super) fn retain(&mut self, column: u8, keep: impl FnMut(&Descriptor) -> bool) {
        if let Some(queue) = self.queues.get_mut(usize::from(column)) {
            queue.retain(keep);
            if queue.is_empty() {
                self.free &= !bit(column);
            }
        }
    }

    /// Whether busy columns are passed.
    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    /// Changes whether busy columns are passed.
    pub(super) fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// Free buffers of a column.
    pub(super) fn queued(&self, column: u8) -> usize {
        self.queues
            .get(usize::from(column))
            .map_or(0, VecDeque::len)
    }

    /// How often a busy column was passed.
    pub(super) fn passed(&self) -> u64 {
        self.passed
    }

    /// The partition and the column that are next, if the column has a free buffer.
    fn choose(&mut self) -> Option<(usize, u8)> {
        let several = !self.live.is_power_of_two();
        let last = self.last.filter(|_| several).map_or(0, bit);
        let candidates = self.live & !last;
        let count = self.partitions.len();
        let mut passed = 0;
        for n in 0..count {
            let p = (self.next_partition + n) % count;
            let mine = candidates & self.partitions[p].columns;
            let open = match self.mode {
                Mode::Skip => mine & self.free,
                Mode::Wait => mine,
            };
            if open == 0 {
                passed += u64::from(mine.count_ones());
                continue;
            }
            let turn = self.partitions[p].turn;
            let column = self.best(open, turn);
            if self.free & bit(column) == 0 {
                return None;
            }
            let chosen = self.rank(column, turn);
            let better = columns_of(mine & !self.free).filter(|&c| self.rank(c, turn) > chosen);
            self.passed += passed + better.count() as u64;
            return Some((p, column));
        }
        None
    }

    /// The column of a set, which is not empty, that ranks first.
    fn best(&self, open: u64, turn: u8) -> u8 {
        if matches!(self.discipline, Discipline::Turns) {
            let ahead = open & u64::MAX.checked_shl(turn.into()).unwrap_or(0);
            let first = if ahead == 0 { open } else { ahead };
            return first.trailing_zeros() as u8;
        }
        let best = columns_of(open).max_by_key(|&column| self.rank(column, turn));
        best.unwrap_or(0)
    }

    /// Columns with a higher rank come first; of equal ones, the first from `turn` on.
    fn rank(&self, column: u8, turn: u8) -> (i64, u8) {
        let n = usize::from(column);
        let score = match &self.discipline {
            Discipline::Turns => 0,
            Discipline::Weights(weights) => self.balance[n] + i64::from(weights[n]),
            Discipline::QueueLength => self.queues[n].len() as i64,
        };
        let columns = self.queues.len() as u8;
        let distance = if column >= turn {
            column - turn
        } else {
            columns - turn + column
        };
        (score, u8::MAX - distance)
    }

    /// Moves the turns on, and charges the column with its event.
    fn settle(&mut self, partition: usize, column: u8) {
        self.next_partition = (partition + 1) % self.partitions.len();
        let mine = self.partitions[partition].columns & self.live;
        self.partitions[partition].turn = (column + 1) % self.queues.len() as u8;
        if let Discipline::Weights(weights) = &self.discipline {
            let weight = |c: u8| i64::from(weights[usize::from(c)]);
            let total: i64 = columns_of(mine).map(weight).sum();
            for c in columns_of(mine) {
                let charge = if c == column { total } else { 0 };
                let balance = &mut self.balance[usize::from(c)];
                // A column that was busy for long does not gain on the others without limit.
                *balance = (*balance + weight(c) - charge).clamp(-total, total);
            }
        }
    }
}
