//! Geometry and optics of the NA62 RICH, as far as a ring finder needs them.
//!
//! Published figures (NA62 collaboration, "The beam and detector of the NA62 experiment at
//! CERN", JINST 12 (2017) P05025, section on the RICH): mirrors of 17.02 m focal length, neon
//! of (n - 1) = 62.8e-6, two disks of 976 photomultipliers each on a hexagonal lattice of
//! 18 mm pitch. The cable map is not published; this layout is the project's own:
//!
//! - a disk is the 976 lattice sites nearest to its centre, a site lying on the centre itself;
//!   of the outermost, incomplete shell the first sites in row order are taken;
//! - within a disk the sites are numbered by row, y then x ascending. Neighbours in a row have
//!   consecutive indices, so the hits of one ring have similar indices;
//! - disk 0 (Jura) has the indices 0..976, disk 1 (Saleve) 976..1952.
//!
//! The mirrors of one side send all their light to one disk, so a ring lies on one disk and each
//! disk has a focal plane of its own. Coordinates are in mm from the disk's own centre, and the
//! finder treats the disks separately.

/// Photomultipliers on one disk.
pub const PMS_PER_DISK: usize = 976;
/// Number of disks: 0 is Jura, 1 is Saleve.
pub const DISKS: usize = 2;
/// Total number of photomultipliers; their indices are 0..PMS.
pub const PMS: usize = DISKS * PMS_PER_DISK;
/// Distance of neighbouring photomultipliers, in mm, and diameter of the round opening of their
/// light cones. A hit means that a photon entered one, anywhere in its opening.
pub const PITCH_MM: f32 = 18.0;
/// Standard deviation of a hit in any direction, in mm: uniform light on a round opening has a
/// variance of 1/16 of the square of its diameter.
pub const HIT_ERROR_MM: f64 = PITCH_MM as f64 / 4.0;
/// Focal length of the mirrors, in mm.
pub const FOCAL_LENGTH_MM: f64 = 17_020.0;
/// Refractive index of neon at 300 nm, minus one.
pub const REFRACTIVITY: f64 = 62.8e-6;
/// Ring centres within this distance of the disk's centre, in mm, are inside the acceptance: a ring
/// of the largest radius (190 mm) around such a centre lies on the disk (radius 295 mm).
pub const ACCEPTANCE_MM: f32 = 100.0;

/// Largest lattice coordinate in the table; the disk's rim is at 17.
const REACH: i32 = 20;
/// Number of bins for the squared distance of a site, in units of the pitch squared: 3 * REACH^2 +
/// 1.
const SHELLS: usize = 1201;

/// Squared distance from the origin of lattice site (q, r), in units of the pitch squared:
/// the lattice vectors are (1, 0) and (1/2, sqrt(3)/2).
const fn shell(q: i32, r: i32) -> usize {
    (q * q + q * r + r * r) as usize
}

/// Distance between rows, in units of the pitch: sqrt(3) / 2.
pub(super) const ROW: f32 = 0.866_025_4;

const fn layout() -> [[f32; 2]; PMS] {
    let mut sites = [0usize; SHELLS];
    let mut r = -REACH;
    while r <= REACH {
        let mut q = -REACH;
        while q <= REACH {
            sites[shell(q, r)] += 1;
            q += 1;
        }
        r += 1;
    }
    // Shells below `rim` are complete; `spare` sites of the rim complete the disk.
    let mut rim = 0;
    let mut spare = PMS_PER_DISK;
    while sites[rim] <= spare {
        spare -= sites[rim];
        rim += 1;
    }

    let mut table = [[0.0; 2]; PMS];
    let mut at = 0;
    let mut r = -REACH;
    while r <= REACH {
        let mut q = -REACH;
        while q <= REACH {
            let s = shell(q, r);
            if s < rim || (s == rim && spare > 0) {
                if s == rim {
                    spare -= 1;
                }
                // Each row is shifted by half a pitch relative to the previous one.
                let x = PITCH_MM * (q as f32 + 0.5 * r as f32);
                let y = PITCH_MM * ROW * r as f32;
                table[at] = [x, y];
                table[at + PMS_PER_DISK] = [x, y];
                at += 1;
            }
            q += 1;
        }
        r += 1;
    }
    assert!(at == PMS_PER_DISK);
    table
}

/// Value of [`SITES`] where a lattice site has no photomultiplier.
const NO_SITE: u16 = u16::MAX;
/// Number of sites in a row or column of [`SITES`].
const SIDE: usize = 2 * REACH as usize + 1;

/// Photomultiplier of disk 0 on lattice site (q, r), at [r + REACH][q + REACH].
static SITES: [[u16; SIDE]; SIDE] = {
    let mut sites = [[NO_SITE; SIDE]; SIDE];
    let mut pm = 0;
    while pm < PMS_PER_DISK {
        let (q, r) = site_near(POSITIONS[pm][0], POSITIONS[pm][1]);
        sites[(r + REACH) as usize][(q + REACH) as usize] = pm as u16;
        pm += 1;
    }
    sites
};

/// Rounds to the nearest integer; halves go away from zero.
const fn round(v: f32) -> i32 {
    (if v < 0.0 { v - 0.5 } else { v + 0.5 }) as i32
}

/// Lattice site (q, r) whose hexagonal cell contains the point (x, y), in mm.
///
/// Each of the three hexagonal coordinates, whose sum q + r + s is 0, is rounded. The one with the
/// largest rounding error is recomputed from the other two, which gives the cell of the nearest
/// centre.
const fn site_near(x: f32, y: f32) -> (i32, i32) {
    let r = y / (PITCH_MM * ROW);
    let q = x / PITCH_MM - 0.5 * r;
    let s = -q - r;
    let (rq, rr, rs) = (round(q), round(r), round(s));
    let (dq, dr, ds) = (
        (rq as f32 - q).abs(),
        (rr as f32 - r).abs(),
        (rs as f32 - s).abs(),
    );
    if dq > dr && dq > ds {
        (-rr - rs, rr)
    } else if dr > ds {
        (rq, -rq - rs)
    } else {
        (rq, rr)
    }
}

/// Photomultiplier of `disk` whose light cone contains the point (x, y), in mm from the disk's
/// centre; `None` outside the disk or for an invalid disk.
#[must_use]
#[inline]
pub fn pm_at(disk: u8, x: f32, y: f32) -> Option<u16> {
    // Excludes far points and NaN, so that the lattice coordinates below are small.
    if !(x.abs() < 1e3 && y.abs() < 1e3) {
        return None;
    }
    let (q, r) = site_near(x, y);
    let index = |v: i32| usize::try_from(v + REACH).ok();
    let pm = *SITES.get(index(r)?)?.get(index(q)?)?;
    (pm != NO_SITE && usize::from(disk) < DISKS).then(|| pm + u16::from(disk) * PMS_PER_DISK as u16)
}

/// Position of every photomultiplier, (x, y) in mm from the centre of its disk, by index.
pub static POSITIONS: [[f32; 2]; PMS] = layout();

/// Disk of photomultiplier `pm`: 0 or 1.
#[must_use]
#[inline]
pub fn disk_of(pm: u16) -> u8 {
    u8::from(usize::from(pm) >= PMS_PER_DISK)
}

/// Readout board of photomultiplier `pm`, where `boards` (1..=16) boards share the detector in
/// equal, contiguous ranges of indices. With four boards, each reads out half a disk.
#[must_use]
#[inline]
pub fn board_of(pm: u16, boards: u8) -> u8 {
    (u32::from(pm) * u32::from(boards) / PMS as u32) as u8
}

/// Radius in mm of the ring of a particle of momentum `momentum` (GeV/c) and mass `mass`
/// (GeV/c2); `None` below the Cherenkov threshold.
///
/// cos(theta) = 1 / (n beta), and a spherical mirror of focal length f images light of angle
/// theta onto a circle of radius f tan(theta), wherever along the track it was emitted.
#[must_use]
pub fn ring_radius_mm(momentum: f64, mass: f64) -> Option<f32> {
    let beta = momentum / momentum.hypot(mass);
    let cos = 1.0 / ((1.0 + REFRACTIVITY) * beta);
    (cos < 1.0).then(|| (FOCAL_LENGTH_MM * cos.acos().tan()) as f32)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sites_are_distinct_lattice_sites_on_a_disk_of_295_mm() {
        let disk = &POSITIONS[..PMS_PER_DISK];
        for (i, a) in disk.iter().enumerate() {
            assert!(a[0].hypot(a[1]) < 297.0);
            for b in &disk[i + 1..] {
                assert!((a[0] - b[0]).hypot(a[1] - b[1]) > 0.999 * PITCH_MM);
            }
        }
        let rim = disk.iter().map(|p| p[0].hypot(p[1])).fold(0.0, f32::max);
        // 976 cells of sqrt(3)/2 pitch^2 fill a circle of 295 mm.
        assert!((285.0..297.0).contains(&rim), "{rim}");
        assert_eq!(disk, &POSITIONS[PMS_PER_DISK..]);
    }

    #[test]
    fn a_point_belongs_to_the_nearest_photomultiplier() {
        for (pm, &[x, y]) in POSITIONS.iter().enumerate() {
            for step in 0..6 {
                // Close to the middle of each side, just inside.
                let (sin, cos) = (step as f32 * std::f32::consts::FRAC_PI_3).sin_cos();
                let found = pm_at(disk_of(pm as u16), x + 8.9 * cos, y + 8.9 * sin);
                assert_eq!(found, Some(pm as u16));
            }
        }
        assert_eq!(pm_at(0, 320.0, 0.0), None);
        assert_eq!(pm_at(0, -1e9, f32::NAN), None);
        assert_eq!(pm_at(0, f32::INFINITY, f32::MIN), None);
        assert_eq!(pm_at(2, 0.0, 0.0), None);
    }

    /// The published pitch, and the variance of uniform light on an opening of that diameter, by
    /// summation.
    #[test]
    fn cells_are_hexagons_of_18_mm_around_round_openings() {
        let pm = PMS_PER_DISK / 2;
        let [x, y] = POSITIONS[pm];
        let steps = || (-150..=150).map(|step| step as f32 * 0.07);
        let places = steps().flat_map(|dx| steps().map(move |dy| (dx, dy)));
        let inside = places.filter(|(dx, dy)| pm_at(0, x + dx, y + dy) == Some(pm as u16));
        let (mut cell, mut n, mut xx, mut yy) = (0.0, 0.0, 0.0, 0.0);
        for (dx, dy) in inside {
            cell += 1.0;
            if dx.hypot(dy) <= 9.0 {
                n += 1.0;
                xx += f64::from(dx * dx);
                yy += f64::from(dy * dy);
            }
        }
        for variance in [xx / n, yy / n] {
            let error = variance.sqrt();
            assert!((error / HIT_ERROR_MM - 1.0).abs() < 0.01, "{error}");
        }
        // sqrt(3) / 2 times the square of the pitch, and a circle of that diameter.
        assert!(
            (cell * 0.07 * 0.07 / 280.592 - 1.0_f64).abs() < 0.01,
            "{cell}"
        );
        assert!((n * 0.07 * 0.07 / 254.469 - 1.0_f64).abs() < 0.01, "{n}");
    }

    #[test]
    fn indices_run_by_row() {
        for pair in POSITIONS[..PMS_PER_DISK].windows(2) {
            let same_row = (pair[0][1] - pair[1][1]).abs() < 1e-3;
            assert!(pair[0][1] + 1e-3 < pair[1][1] || (same_row && pair[0][0] < pair[1][0]));
        }
    }

    #[test]
    fn the_centre_of_mass_is_the_centre() {
        for axis in 0..2 {
            let sum: f32 = POSITIONS[..PMS_PER_DISK].iter().map(|p| p[axis]).sum();
            assert!((sum / PMS_PER_DISK as f32).abs() < 3.0);
        }
    }

    #[test]
    fn boards_share_the_detector_evenly() {
        for boards in 1..=16u8 {
            let mut count = [0usize; 16];
            let mut last = 0;
            for pm in 0..PMS as u16 {
                let board = board_of(pm, boards);
                assert!(board < boards && board >= last);
                last = board;
                count[usize::from(board)] += 1;
            }
            let used = &count[..usize::from(boards)];
            assert!(used.iter().max().unwrap() - used.iter().min().unwrap() <= 1);
        }
        assert_eq!((board_of(487, 4), board_of(488, 4)), (0, 1));
        assert_eq!((disk_of(975), disk_of(976)), (0, 1));
    }

    #[test]
    fn radii_are_the_published_ones() {
        let electron = ring_radius_mm(35.0, 0.000_511).unwrap();
        assert!((electron - 190.7).abs() < 0.5, "{electron}");
        // Pion threshold in this neon: p = m / sqrt(n^2 - 1) = 12.45 GeV/c.
        assert!(ring_radius_mm(12.4, 0.139_57).is_none());
        assert!(ring_radius_mm(12.6, 0.139_57).is_some());
        let (pion, muon) = (
            ring_radius_mm(15.0, 0.139_57).unwrap(),
            ring_radius_mm(15.0, 0.105_66).unwrap(),
        );
        assert!(pion < muon && muon < electron);
    }
}
