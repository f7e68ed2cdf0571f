//! CPUs of the loops of a program.

use anyhow::{Result, ensure};
use pollux_pmd::lcore;

/// The CPU of each loop, in the order of `roles`, which are names with numbers of loops. `cores` are those
/// of the option `--cores`, one for each loop. Without any, the last CPUs of this process are taken, the
/// last of all first; where there are fewer than loops, the loops share them, and none has its own.
///
/// # Errors
/// A CPU that this process may not use, one that is there twice, or another number than that of the loops.
pub fn place_loops(cores: &[usize], roles: &[(&str, usize)]) -> Result<Vec<Option<usize>>> {
    place(cores, roles, lcore::allowed_cpus())
}

fn place(
    cores: &[usize],
    roles: &[(&str, usize)],
    allowed: Vec<usize>,
) -> Result<Vec<Option<usize>>> {
    for (place, cpu) in cores.iter().enumerate() {
        ensure!(
            allowed.contains(cpu),
            "--cores: cpu {cpu} is not among this process's: {allowed:?}"
        );
        ensure!(
            !cores[..place].contains(cpu),
            "--cores: cpu {cpu} is there twice: each loop needs one of its own"
        );
    }
    let names = roles
        .iter()
        .flat_map(|&(name, n)| std::iter::repeat_n(name, n));
    let names: Vec<&str> = names.collect();
    let loops = names.len();
    if cores.is_empty() {
        if allowed.len() >= loops {
            return Ok(allowed.into_iter().rev().take(loops).map(Some).collect());
        }
        let cpus = allowed.len();
        tracing::warn!("{loops} loops share {cpus} CPUs, which increases latencies");
        return Ok(vec![None; loops]);
    }
    ensure!(
        cores.len() == loops,
        "--cores: {} CPUs for {loops} loops: {}",
        cores.len(),
        names.join(",")
    );
    Ok(cores.iter().copied().map(Some).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn loops_have_the_cpus_that_are_given_or_the_last_ones() {
        let roles = [("images", 1), ("emulator", 0), ("worker", 2)];
        let place = |cores: &[usize], cpus: usize| {
            place(cores, &roles, (0..cpus).collect()).map_err(|error| error.to_string())
        };
        assert_eq!(place(&[2, 0, 1], 4), Ok(vec![Some(2), Some(0), Some(1)]));
        assert_eq!(place(&[], 4), Ok(vec![Some(3), Some(2), Some(1)]));
        assert_eq!(place(&[], 2), Ok(vec![None; 3]));
        for (cores, expected) in [
            (&[1, 2][..], "2 CPUs for 3 loops: images,worker,worker"),
            (&[1, 1, 2], "cpu 1 is there twice"),
            (
                &[1, 2, 9],
                "cpu 9 is not among this process's: [0, 1, 2, 3]",
            ),
        ] {
            let error = place(cores, 4).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
