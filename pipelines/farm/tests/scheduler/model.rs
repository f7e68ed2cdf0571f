//! The scheduler's rules, written out with vectors and scans.

use pollux_farm::scheduler::{Config, Discipline, Mode};

/// What was sent to a receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) mep: u64,
    pub(crate) descriptor: u16,
    pub(crate) generation: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Buffer {
    Unknown,
    Free,
    Assigned(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mep {
    Waiting,
    At { node: usize },
    Decided,
}

pub(crate) struct Model {
    columns: usize,
    column_of: Vec<usize>,
    partition_of: Vec<usize>,
    pub(crate) mode: Mode,
    longest_queue: bool,
    most_waiting: usize,
    pub(crate) excluded: Vec<bool>,
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) generations: Vec<u32>,
    /// Free buffers of all columns, in the order in which they came.
    free: Vec<usize>,
    ready: Option<usize>,
    last: Option<usize>,
    /// Columns that were chosen, the latest last.
    chosen: Vec<usize>,
    pub(crate) meps: Vec<Mep>,
    unsent: Vec<u64>,
    again: Vec<u64>,
    pub(crate) refused: u64,
    pub(crate) sent: Vec<Sent>,
}

impl Model {
    pub(crate) fn new(config: &Config) -> Self {
        let topology = &config.topology;
        let column = |node| usize::from(topology.column_of(node).expect("a node"));
        let columns = topology.columns();
        let partition_of = match &config.partition_of[..] {
            [] => vec![0; columns],
            given => given.iter().map(|&p| usize::from(p)).collect(),
        };
        Self {
            columns,
            column_of: (0..topology.nodes() as u16).map(column).collect(),
            partition_of,
            mode: config.mode,
            longest_queue: config.discipline == Discipline::QueueLength,
            most_waiting: config.pending,
            excluded: vec![false; topology.nodes()],
            buffers: vec![Buffer::Unknown; topology.descriptors()],
            generations: vec![0; topology.descriptors()],
            free: Vec::new(),
            ready: None,
            last: None,
            chosen: Vec::new(),
            meps: Vec::new(),
            unsent: Vec::new(),
            again: Vec::new(),
            refused: 0,
            sent: Vec::new(),
        }
    }

    pub(crate) fn node(&self, descriptor: usize) -> usize {
        descriptor % self.column_of.len()
    }

    fn column(&self, descriptor: usize) -> usize {
        self.column_of[self.node(descriptor)]
    }

    pub(crate) fn waiting(&self) -> usize {
        self.unsent.len() + self.again.len()
    }

    pub(crate) fn free_in(&self, column: usize) -> usize {
        let all = self.free.iter().chain(&self.ready);
        all.filter(|&&d| self.column(d) == column).count()
    }

    fn lives(&self, column: usize) -> bool {
        (0..self.column_of.len()).any(|n| self.column_of[n] == column && !self.excluded[n])
    }

    /// Of several columns that have nodes, the last one does not come again.
    fn is_candidate(&self, column: usize) -> bool {
        let several = (0..self.columns).filter(|&c| self.lives(c)).count() > 1;
        self.lives(column) && !(several && self.last == Some(column))
    }

    fn queue(&self, column: usize) -> usize {
        let mine = |&&d: &&usize| self.column(d) == column;
        self.free.iter().filter(mine).count()
    }

    /// Columns of a partition in the order in which they are asked.
    fn order(&self, partition: usize) -> Vec<usize> {
        let mine = |&&c: &&usize| self.partition_of[c] == partition;
        let first = self.chosen.iter().rev().find(mine).map_or(0, |c| c + 1);
        let turn = (0..self.columns).map(|n| (first + n) % self.columns);
        let mut order: Vec<usize> = turn.filter(|c| mine(&c)).collect();
        if self.longest_queue {
            order.sort_by_key(|&c| usize::MAX - self.queue(c));
        }
        order
    }

    /// The descriptor that is next.
    fn choose(&self) -> Option<usize> {
        let partitions = self.partition_of.iter().max().expect("a column") + 1;
        let last = self.chosen.last().map(|&c| self.partition_of[c]);
        let first = last.map_or(0, |p| p + 1);
        let mut asked = (0..partitions).flat_map(|n| self.order((first + n) % partitions));
        let column = asked.find(|&c| {
            let passes = self.mode == Mode::Skip && self.queue(c) == 0;
            self.is_candidate(c) && !passes
        })?;
        let mut queue = self.free.iter().copied();
        queue.find(|&d| self.column(d) == column)
    }

    pub(crate) fn serve(&mut self) {
        loop {
            if let Some(d) = self.ready
                && !self.is_candidate(self.column(d))
            {
                self.free.insert(0, d);
                self.ready = None;
            }
            if self.ready.is_none()
                && let Some(d) = self.choose()
            {
                self.free.retain(|&other| other != d);
                self.chosen.push(self.column(d));
                self.ready = Some(d);
            }
            let Some(d) = self.ready else { return };
            let mep = if !self.again.is_empty() {
                self.again.remove(0)
            } else if !self.unsent.is_empty() {
                self.unsent.remove(0)
            } else {
                return;
            };
            self.ready = None;
            self.last = Some(self.column(d));
            self.generations[d] += 1;
            self.buffers[d] = Buffer::Assigned(mep);
            self.meps[mep as usize] = Mep::At { node: self.node(d) };
            self.sent.push(Sent {
                mep,
                descriptor: d as u16,
                generation: self.generations[d],
            });
        }
    }

    pub(crate) fn trigger(&mut self) {
        if self.waiting() >= self.most_waiting {
            self.refused += 1;
            return;
        }
        self.unsent.push(self.meps.len() as u64);
        self.meps.push(Mep::Waiting);
        self.serve();
    }

    pub(crate) fn feedback(&mut self, d: usize) {
        if !self.excluded[self.node(d)] && self.buffers[d] != Buffer::Free {
            self.buffers[d] = Buffer::Free;
            self.free.push(d);
            self.serve();
        }
    }

    pub(crate) fn decide(&mut self, mep: usize) {
        self.meps[mep] = Mep::Decided;
        self.again.retain(|&m| m != mep as u64);
    }

    pub(crate) fn exclude(&mut self, node: usize) {
        if std::mem::replace(&mut self.excluded[node], true) {
            return;
        }
        let nodes = self.column_of.len();
        self.free.retain(|d| d % nodes != node);
        self.ready = self.ready.filter(|d| d % nodes != node);
        for d in (node..self.buffers.len()).step_by(nodes) {
            self.buffers[d] = Buffer::Unknown;
        }
        for (mep, state) in self.meps.iter_mut().enumerate() {
            if *state == (Mep::At { node }) {
                *state = Mep::Waiting;
                self.again.push(mep as u64);
            }
        }
        self.serve();
    }

    pub(crate) fn readmit(&mut self, node: usize) {
        self.excluded[node] = false;
    }
}
