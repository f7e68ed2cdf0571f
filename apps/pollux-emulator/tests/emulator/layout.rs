//! The positions of the photomultipliers, computed from docs/formats/rich-hits.md alone.

use pollux_na62::rich::geometry::{POSITIONS, board_of};

const PAGE: &str = include_str!("../../../../docs/formats/rich-hits.md");

/// The rows of the table below a header, as their cells.
fn rows(header: &str) -> Vec<Vec<&'static str>> {
    let (_, rest) = PAGE.split_once(header).unwrap();
    let lines = rest
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let cells = |line: &'static str| line.trim_matches('|').split('|').map(str::trim).collect();
    lines.map(cells).collect()
}

/// Rules 1 to 3 of the page.
fn sites() -> Vec<(i32, i32)> {
    let mut sites = Vec::new();
    let mut rim = 0;
    for r in -40_i32..=40 {
        for q in -40_i32..=40 {
            let s = q * q + q * r + r * r;
            if s == 271 {
                rim += 1;
            }
            if s < 271 || s == 271 && rim <= 9 {
                sites.push((q, r));
            }
        }
    }
    assert_eq!((sites.len(), rim), (976, 12));
    sites
}

#[test]
fn positions_follow_from_the_page() {
    for (i, (q, r)) in sites().into_iter().enumerate() {
        let x = 18.0 * (f64::from(q) + f64::from(r) / 2.0);
        let y = 18.0 * 3.0_f64.sqrt() / 2.0 * f64::from(r);
        for [px, py] in [POSITIONS[i], POSITIONS[i + 976]] {
            assert!((f64::from(px) - x).hypot(f64::from(py) - y) < 1e-3, "{i}");
        }
    }
}

#[test]
fn the_examples_of_the_page_are_right() {
    let sites = sites();
    let rows = rows("| index | q | r | x, mm | y, mm |");
    assert!(rows.len() >= 10);
    for row in rows {
        let i: usize = row[0].parse().unwrap();
        assert_eq!(
            (row[1].parse(), row[2].parse()),
            (Ok(sites[i].0), Ok(sites[i].1))
        );
        let [x, y] = [row[3], row[4]].map(|number| number.parse::<f32>().unwrap());
        assert!((POSITIONS[i][0] - x).abs() < 1e-3 && (POSITIONS[i][1] - y).abs() < 1e-3);
    }
}

#[test]
fn the_boards_of_the_page_are_right() {
    for row in rows("| boards | indices of board 0, 1, ... |") {
        let boards: u8 = row[0].parse().unwrap();
        for pm in 0..1952_u16 {
            let board = u32::from(pm) * u32::from(boards) / 1952;
            assert_eq!(u32::from(board_of(pm, boards)), board);
        }
        if let Some(each) = row[1].strip_suffix(" each") {
            assert_eq!(each.parse::<u32>().unwrap() * u32::from(boards), 1952);
            continue;
        }
        for (board, range) in (0..).zip(row[1].split(", ")) {
            let (first, last) = range.split_once('-').unwrap();
            for pm in [first, last] {
                assert_eq!(board_of(pm.parse().unwrap(), boards), board);
            }
            let next = last.parse::<u16>().unwrap() + 1;
            assert!(next == 1952 || board_of(next, boards) == board + 1);
        }
    }
}
