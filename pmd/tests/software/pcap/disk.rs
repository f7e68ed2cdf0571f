//! A full disk causes neither a panic nor a wrong count.

use std::path::Path;

use pollux_mempool::Burst;
use pollux_pmd::{Registry, StartedPort};
use tempfile::TempDir;

use super::support::*;

#[test]
fn a_full_disk_is_counted_and_told() {
    let full = start_error_on_full();
    assert!(full.contains("/dev/full"), "{full}");

    // 64 KiB of disk
    let dir = TempDir::new().unwrap();
    let Some(_mount) = small_disk(dir.path()) else {
        return;
    };
    let path = dir.path().join("x.pcapng");
    let frames: Vec<_> = (0..2000_u64)
        .map(|i| (i, bytes_of(1000, i as u8)))
        .collect();
    let error = record(&path, &frames).unwrap_err().to_string();
    assert!(
        error.contains("x.pcapng") && error.contains("writing failed"),
        "{error}"
    );
    let got = play(&path).unwrap();
    assert!(got.stopped.is_ok(), "what was written is a whole capture");
}

/// The header cannot be written.
fn start_error_on_full() -> String {
    let pool = pool(64);
    let port = Registry::builtin().open("pcap:tx=/dev/full").unwrap();
    match port.configure(config(&pool, 0, 1)).unwrap().start() {
        Ok(_) => panic!("wrote to /dev/full"),
        Err(error) => error.to_string(),
    }
}

struct Mount<'a>(&'a Path);

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(self.0).status();
    }
}

fn small_disk(at: &Path) -> Option<Mount<'_>> {
    let args = ["-t", "tmpfs", "-o", "size=64k", "tmpfs"];
    let mounted = std::process::Command::new("mount")
        .args(args)
        .arg(at)
        .output();
    if mounted.is_ok_and(|output| output.status.success()) {
        return Some(Mount(at));
    }
    println!("skipped: mounting a small disk needs root");
    None
}

#[test]
fn errors_and_frames_of_a_full_disk_add_up() {
    let dir = TempDir::new().unwrap();
    let Some(_mount) = small_disk(dir.path()) else {
        return;
    };
    let pool = pool(64);
    let spec = format!("pcap:tx={}/x", dir.path().display());
    let port = Registry::builtin().open(&spec).unwrap();
    let StartedPort { port, rx, mut tx } = port
        .configure(config(&pool, 0, 1))
        .unwrap()
        .start()
        .unwrap();
    let mut cache = pool.cache(16).unwrap();
    let mut burst = Burst::<8>::new();
    for _ in 0..300 {
        while let Some(mbuf) = cache.alloc_from(&[7; 1400]) {
            if burst.push(mbuf).is_err() || burst.is_full() {
                break;
            }
        }
        assert_eq!(tx[0].tx(&mut cache, &mut burst), 8);
    }
    let sent = tx[0].sent();
    assert!(port.stop(rx, tx).is_err());
    assert_eq!(sent.packets() + sent.errors(), 2400);
    assert!(sent.errors() > 0);
}
