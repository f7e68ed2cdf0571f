//! Places of feeders and nodes in a torus, and the routes between them (thesis, II.D, V.A and V.C).

/// A torus: rows with feeders, columns, core layers, and cover layers of computing nodes alone.
///
/// Each row of each core layer is a ring in X, with the feeders at equal distances (figure III-8).
/// Each column of each core layer is a ring in Y; the nodes of all layers at a place are a ring in Z.
/// Nodes are numbered by X, then Y, then layer.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    /// Nodes in a row.
    pub columns: u16,
    /// Rows of a layer.
    pub rows: u16,
    /// Core layers: those that data enter.
    pub layers: u16,
    /// Feeders in a row of a core layer.
    pub feeders_per_row: u16,
    /// Computing nodes, those of the core included.
    pub nodes: u16,
}

/// A way in one ring: the link controller that sends, and that which takes the packet off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leg {
    /// Sender.
    pub from: u16,
    /// Receiver.
    pub to: u16,
}

/// One way in each dimension where there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Route {
    legs: [Leg; 3],
    len: u8,
}

impl Route {
    /// The ways.
    #[must_use]
    pub fn legs(&self) -> &[Leg] {
        &self.legs[..usize::from(self.len)]
    }

    fn push(&mut self, from: u16, to: u16) {
        if from != to {
            self.legs[usize::from(self.len)] = Leg { from, to };
            self.len += 1;
        }
    }
}

impl Geometry {
    /// Number of feeders.
    #[must_use]
    pub fn feeders(&self) -> u16 {
        self.rows * self.layers * self.feeders_per_row
    }

    /// Nodes of a layer.
    fn places(&self) -> u16 {
        self.columns * self.rows
    }

    /// All layers, the last of which may be incomplete.
    fn depth(&self) -> u16 {
        self.nodes.div_ceil(self.places()).max(self.layers)
    }

    fn x_ring(&self) -> u16 {
        self.columns + self.feeders_per_row
    }

    /// Number of link controllers.
    #[must_use]
    pub fn stations(&self) -> u16 {
        self.first_z() + self.places() * self.depth()
    }

    fn first_y(&self) -> u16 {
        self.rows * self.layers * self.x_ring()
    }

    fn first_z(&self) -> u16 {
        self.first_y() + self.places() * self.layers
    }

    /// The link controller of a column in the X ring of a row.
    fn x_station(&self, row: u16, layer: u16, column: u16) -> u16 {
        // One feeder in front of each equal part of the columns.
        let before = column * self.feeders_per_row / self.columns + 1;
        (layer * self.rows + row) * self.x_ring() + column + before
    }

    fn y_station(&self, row: u16, layer: u16, column: u16) -> u16 {
        self.first_y() + (layer * self.columns + column) * self.rows + row
    }

    fn z_station(&self, row: u16, layer: u16, column: u16) -> u16 {
        self.first_z() + (row * self.columns + column) * self.depth() + layer
    }

    /// The link controller after this one in its ring.
    #[must_use]
    pub fn next(&self, station: u16) -> u16 {
        let (first, len) = match station {
            s if s < self.first_y() => (0, self.x_ring()),
            s if s < self.first_z() => (self.first_y(), self.rows),
            _ => (self.first_z(), self.depth()),
        };
        let at = station - first;
        let ring = at / len * len;
        first + ring + (at - ring + 1) % len
    }

    /// Row, core layer and place in the row of a feeder.
    fn feeder_place(&self, feeder: u16) -> (u16, u16, u16) {
        let (row, side) = (feeder / self.feeders_per_row, feeder % self.feeders_per_row);
        (row % self.rows, row / self.rows, side)
    }

    /// The link controller of a feeder.
    #[must_use]
    pub fn feeder(&self, feeder: u16) -> u16 {
        let (row, layer, side) = self.feeder_place(feeder);
        let first = side * self.columns / self.feeders_per_row + side;
        (layer * self.rows + row) * self.x_ring() + first
    }

    /// Column of a node.
    #[must_use]
    pub fn column(&self, node: u16) -> u16 {
        node % self.columns
    }

    /// The way from a feeder to a node: X, then Y, then Z.
    #[must_use]
    pub fn route(&self, feeder: u16, node: u16) -> Route {
        let (row, layer, _) = self.feeder_place(feeder);
        let column = self.column(node);
        let to_row = node % self.places() / self.columns;
        let to_layer = node / self.places();
        let mut route = Route::default();
        route.push(self.feeder(feeder), self.x_station(row, layer, column));
        let y = |row| self.y_station(row, layer, column);
        route.push(y(row), y(to_row));
        let z = |layer| self.z_station(to_row, layer, column);
        route.push(z(layer), z(to_layer));
        route
    }

    /// Link controllers that a packet passes on its way, the receivers of the ways included.
    #[must_use]
    pub fn hops(&self, route: &Route) -> u16 {
        let mut hops = 0;
        for leg in route.legs() {
            let mut at = leg.from;
            while at != leg.to {
                at = self.next(at);
                hops += 1;
            }
        }
        hops
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chapter V: 24 feeders, a core of 6 x 6 x 2 and six cover layers with 275 nodes in all.
    const THESIS: Geometry = Geometry {
        columns: 6,
        rows: 6,
        layers: 2,
        feeders_per_row: 2,
        nodes: 275,
    };

    #[test]
    fn every_ring_closes_and_every_station_is_in_one() {
        for geometry in [
            THESIS,
            Geometry {
                rows: 2,
                layers: 1,
                feeders_per_row: 1,
                nodes: 12,
                ..THESIS
            },
        ] {
            let all = geometry.stations();
            let mut seen = vec![0; all.into()];
            for station in 0..all {
                seen[usize::from(geometry.next(station))] += 1;
                let mut at = geometry.next(station);
                let mut steps = 1;
                while at != station {
                    at = geometry.next(at);
                    steps += 1;
                    assert!(steps <= 64);
                }
            }
            assert!(seen.iter().all(|&n| n == 1));
        }
    }

    #[test]
    fn the_thesis_farm_has_its_size() {
        assert_eq!(THESIS.feeders(), 24);
        // 72 nodes of the core in X and Y, 24 feeders, and rings in Z of 2 core and 6 cover layers.
        assert_eq!(THESIS.stations(), 72 + 24 + 72 + 36 * 8);
    }

    #[test]
    fn routes_lead_through_at_most_one_ring_of_each_dimension() {
        let mut stations = std::collections::BTreeSet::new();
        for feeder in 0..THESIS.feeders() {
            stations.insert(THESIS.feeder(feeder));
            for node in 0..THESIS.nodes {
                let route = THESIS.route(feeder, node);
                assert_eq!(route.legs()[0].from, THESIS.feeder(feeder));
                // 8 in X, 6 in Y and 8 in Z are the longest rings.
                let hops = THESIS.hops(&route);
                assert!((1..=7 + 5 + 7).contains(&hops), "{feeder} {node}: {hops}");
            }
        }
        assert_eq!(stations.len(), 24);
        // In the row and layer of the feeder, in front of the next one: X alone.
        let route = THESIS.route(0, 2);
        assert_eq!((route.legs().len(), THESIS.hops(&route)), (1, 3));
        // The second feeder of the row is three columns further.
        let route = THESIS.route(1, 3);
        assert_eq!((route.legs().len(), THESIS.hops(&route)), (1, 1));
        // All dimensions.
        assert_eq!(THESIS.route(0, 274).legs().len(), 3);
    }
}
