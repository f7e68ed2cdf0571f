//! The nodes of a farm, their columns and receive buffers, and its feeders.

use std::sync::Arc;

/// Most columns of a farm: a column is a bit of a `u64`.
pub const MAX_COLUMNS: usize = 64;

/// Most feeders of a farm: a feeder is a bit of [`Feeders`].
pub const MAX_FEEDERS: usize = 64;

/// Most receive buffers of a farm: a [`Descriptor`] and their number have 16 bits.
pub const MAX_BUFFERS: usize = (1 << 16) - 1;

/// A farm that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// No column, or more than a mask of columns holds.
    #[error("{0} columns: a farm has 1 to {MAX_COLUMNS}; set `columns`")]
    Columns(usize),
    /// No feeder, or more than a mask of feeders holds.
    #[error("{0} feeders: a farm has 1 to {MAX_FEEDERS}; set `feeders`")]
    Feeders(usize),
    /// No node.
    #[error("no node: a farm has at least one; set `nodes`")]
    NoNode,
    /// No receive buffer, or more than there are descriptors.
    #[error(
        "{nodes} nodes x {buffers} buffers: a farm has 1 to {MAX_BUFFERS} receive buffers; set `buffers`"
    )]
    Buffers {
        /// Nodes of the farm.
        nodes: usize,
        /// Receive buffers of a node.
        buffers: usize,
    },
    /// A node in a column that is not there.
    #[error("node {node} is in column {column} of {columns}; the first column is 0")]
    NoColumn {
        /// The node.
        node: usize,
        /// Its column.
        column: u8,
        /// Columns of the farm.
        columns: usize,
    },
}

/// A receive buffer, as flow control messages name it: node + buffer x nodes (thesis, III.F).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Descriptor(pub u16);

impl Descriptor {
    /// Its place in a table of all descriptors.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A set of feeders: bit n is feeder n.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Feeders(pub u64);

impl Feeders {
    /// No feeder.
    pub const NONE: Self = Self(0);

    /// The first `n` feeders, at most [`MAX_FEEDERS`].
    #[must_use]
    pub fn first(n: usize) -> Self {
        Self(match n {
            0 => 0,
            n => u64::MAX >> (MAX_FEEDERS - n.min(MAX_FEEDERS)),
        })
    }

    /// The set of one feeder; empty where there is no such feeder.
    #[must_use]
    pub fn only(feeder: u8) -> Self {
        Self(1_u64.checked_shl(feeder.into()).unwrap_or(0))
    }

    /// Whether the feeder is in the set.
    #[must_use]
    pub fn has(self, feeder: u8) -> bool {
        self.0 & Self::only(feeder).0 != 0
    }

    /// Whether no feeder is in the set.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set without those of another.
    #[must_use]
    pub fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// The set with those of another.
    #[must_use]
    pub fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Those that are in both sets.
    #[must_use]
    pub fn and(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }

    /// Number of feeders in the set.
    #[must_use]
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The feeders of the set, in the order of their numbers.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = u8> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let first = (rest != 0).then(|| rest.trailing_zeros() as u8);
            rest &= rest.wrapping_sub(1);
            first
        })
    }

    /// The last feeder of the set.
    #[inline]
    pub(crate) fn last(self) -> Option<u8> {
        self.0.checked_ilog2().map(|last| last as u8)
    }

    /// The first feeder of the set from a number on.
    #[must_use]
    pub fn next_from(self, feeder: u8) -> Option<u8> {
        let rest = self.0 & u64::MAX.checked_shl(feeder.into()).unwrap_or(0);
        (rest != 0).then(|| rest.trailing_zeros() as u8)
    }
}

/// The nodes of a farm with their columns and buffers, and the number of feeders.
#[derive(Clone, Debug)]
pub struct Topology {
    feeders: u8,
    columns: u8,
    column_of: Box<[u8]>,
    buffers: u16,
    /// The node and the buffer of each descriptor: a node looks one up for each fragment, and a
    /// division takes longer.
    places: Arc<[(u16, u16)]>,
}

impl Topology {
    /// A farm of which node n is in column `column_of[n]` and has `buffers` receive buffers.
    ///
    /// # Errors
    /// Numbers that are out of range.
    pub fn new(
        feeders: usize,
        columns: usize,
        column_of: &[u8],
        buffers: usize,
    ) -> Result<Self, TopologyError> {
        if !(1..=MAX_COLUMNS).contains(&columns) {
            return Err(TopologyError::Columns(columns));
        }
        if !(1..=MAX_FEEDERS).contains(&feeders) {
            return Err(TopologyError::Feeders(feeders));
        }
        let nodes = column_of.len();
        if nodes == 0 {
            return Err(TopologyError::NoNode);
        }
        let total = nodes.checked_mul(buffers);
        if !total.is_some_and(|n| (1..=MAX_BUFFERS).contains(&n)) {
            return Err(TopologyError::Buffers { nodes, buffers });
        }
        let outside = |&(_, &column): &(usize, &u8)| usize::from(column) >= columns;
        if let Some((node, &column)) = column_of.iter().enumerate().find(outside) {
            return Err(TopologyError::NoColumn {
                node,
                column,
                columns,
            });
        }
        let nodes = 0..nodes as u16;
        let places = (0..buffers as u16).flat_map(|n| nodes.clone().map(move |node| (node, n)));
        Ok(Self {
            places: places.collect(),
            feeders: feeders as u8,
            columns: columns as u8,
            column_of: column_of.into(),
            buffers: buffers as u16,
        })
    }

    /// A farm whose nodes are dealt to the columns in turn, as in the thesis' test setup
    /// (table VII-1).
    ///
    /// # Errors
    /// As of [`Self::new`].
    pub fn regular(
        feeders: usize,
        columns: usize,
        nodes: usize,
        buffers: usize,
    ) -> Result<Self, TopologyError> {
        if !(1..=MAX_COLUMNS).contains(&columns) {
            return Err(TopologyError::Columns(columns));
        }
        if nodes > MAX_BUFFERS {
            return Err(TopologyError::Buffers { nodes, buffers });
        }
        let column_of: Vec<u8> = (0..nodes).map(|node| (node % columns) as u8).collect();
        Self::new(feeders, columns, &column_of, buffers)
    }

    /// Number of feeders.
    #[must_use]
    pub fn feeders(&self) -> usize {
        self.feeders.into()
    }

    /// Number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns.into()
    }

    /// Number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.column_of.len()
    }

    /// Receive buffers of each node.
    #[must_use]
    pub fn buffers(&self) -> usize {
        self.buffers.into()
    }

    /// Receive buffers of all nodes.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        self.nodes() * self.buffers()
    }

    /// The column of a node.
    #[must_use]
    pub fn column_of(&self, node: u16) -> Option<u8> {
        self.column_of.get(usize::from(node)).copied()
    }

    /// The descriptor of a buffer of a node.
    #[must_use]
    pub fn descriptor(&self, node: u16, buffer: usize) -> Option<Descriptor> {
        (usize::from(node) < self.nodes() && buffer < self.buffers())
            .then(|| Descriptor((usize::from(node) + buffer * self.nodes()) as u16))
    }

    /// The node and the buffer that a descriptor names.
    #[must_use]
    #[inline]
    pub fn buffer_of(&self, descriptor: Descriptor) -> Option<(u16, usize)> {
        let (node, buffer) = *self.places.get(descriptor.index())?;
        Some((node, buffer.into()))
    }
}
