//! Circle candidates: triplets of hits, or a grid of centres.

use pollux_pipelines::simd::{LANES, TABLE};

use super::config::{FinderConfig, Method};

/// Indices of hits: the first, second and third hits of two sets of triplets.
pub(super) type Row = [[[u8; LANES]; 3]; 2];

/// Distance of neighbouring centres of the grid, in mm: a ring whose centre lies between four of
/// them is spread over at most two bins.
const GRID_MM: f32 = 12.5;

/// Precomputed candidates.
#[derive(Debug)]
pub(super) struct Seeds {
    /// Triplets of indices below n, for each n up to [`TABLE`].
    triplets: Vec<Vec<Row>>,
    /// Centres: x and y.
    grid: Vec<[[f32; LANES]; 2]>,
}

impl Seeds {
    pub(super) fn new(cfg: &FinderConfig) -> Self {
        let none = Self {
            triplets: Vec::new(),
            grid: Vec::new(),
        };
        match cfg.method {
            Method::Triplets => Self {
                triplets: (0..=TABLE).map(|n| rows(n, cfg.seeds)).collect(),
                ..none
            },
            Method::CentreGrid => Self {
                grid: grid(cfg.max_centre_mm),
                ..none
            },
        }
    }

    /// Triplets of indices below `n`.
    #[inline]
    pub(super) fn triplets(&self, n: usize) -> &[Row] {
        self.triplets.get(n).map_or(&[], |rows| rows)
    }

    /// Grid centres; empty for the method with triplets.
    #[inline]
    pub(super) fn grid(&self) -> &[[[f32; LANES]; 2]] {
        &self.grid
    }
}

/// Triplets in rows; the last row is filled with a repeated index, which defines no circle.
fn rows(n: usize, limit: u16) -> Vec<Row> {
    let all: Vec<_> = Triplets::new(n, limit).collect();
    all.chunks(2 * LANES)
        .map(|chunk| {
            let mut row = Row::default();
            for (n, triplet) in chunk.iter().enumerate() {
                for (indices, &i) in row[n / LANES].iter_mut().zip(triplet) {
                    indices[n % LANES] = i as u8;
                }
            }
            row
        })
        .collect()
}

/// Centres up to `reach` mm from the middle; the last row is filled with the last centre.
fn grid(reach: f32) -> Vec<[[f32; LANES]; 2]> {
    let steps = (reach / GRID_MM).min(1e3) as i32;
    let axis = || (-steps..=steps).map(|i| i as f32 * GRID_MM);
    let centres: Vec<[f32; 2]> = axis()
        .flat_map(|y| axis().map(move |x| [x, y]))
        .filter(|[x, y]| x.hypot(*y) <= reach)
        .collect();
    let rows = centres.chunks(LANES).map(|chunk| {
        let at = |axis: usize| std::array::from_fn(|i| chunk[i.min(chunk.len() - 1)][axis]);
        [at(0), at(1)]
    });
    rows.collect()
}

/// Reproducible pseudo-random numbers, by a xorshift generator (Marsaglia 2003: 13, 17, 5).
pub(super) struct Numbers(u32);

impl Default for Numbers {
    fn default() -> Self {
        Self(0x9E37_79B9)
    }
}

impl Numbers {
    /// The next number below `n`, which is below 2^32.
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        ((u64::from(self.0) * n as u64) >> 32) as usize
    }
}

/// Iterator over triplets of different indices below `n`: all of them if they are no more than
/// `limit`, else `limit` random ones, the same for the same `n`.
pub(super) struct Triplets {
    n: usize,
    left: usize,
    all: bool,
    /// The next triplet, when all are enumerated.
    next: [usize; 3],
    /// Number of random triplets that remain.
    numbers: Numbers,
}

impl Triplets {
    pub(super) fn new(n: usize, limit: u16) -> Self {
        let limit = usize::from(limit);
        let every = n * n.saturating_sub(1) * n.saturating_sub(2) / 6;
        Self {
            n,
            left: every.min(limit),
            all: every <= limit,
            next: [0, 1, 2],
            numbers: Numbers::default(),
        }
    }
}

impl Iterator for Triplets {
    type Item = [usize; 3];

    #[inline]
    fn next(&mut self) -> Option<[usize; 3]> {
        self.left = self.left.checked_sub(1)?;
        if self.all {
            let triplet = self.next;
            let [i, j, k] = triplet;
            self.next = if k + 1 < self.n {
                [i, j, k + 1]
            } else if j + 2 < self.n {
                [i, j + 1, j + 2]
            } else {
                [i + 1, i + 2, i + 3]
            };
            return Some(triplet);
        }
        // Drawn from n, n - 1 and n - 2 numbers, then shifted past the indices already chosen.
        let i = self.numbers.below(self.n);
        let j = self.numbers.below(self.n - 1);
        let j = j + usize::from(j >= i);
        let k = self.numbers.below(self.n - 2);
        let k = k + usize::from(k >= i.min(j));
        let k = k + usize::from(k >= i.max(j));
        Some([i, j, k])
    }
}
