//! A hostile peer: random packets and mutations of good ones, every fourth with a right ICRC.

use pollux_rdma::{Access, Event, Get, Mtu, PathOptions, Payload, Put, QpKind, Receive};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::raw::{ADDRESS, BYTES, KEY, OWN, PEER, Raw, Scene, icrc};
use crate::rig::path;

/// Opcodes, the known ones and their neighbours.
const OPCODES: [u8; 46] = {
    let mut all = [0; 46];
    let mut n = 0;
    while n < 24 {
        all[n] = n as u8;
        n += 1;
    }
    while n < 36 {
        all[n] = 0x20 + (n - 24) as u8;
        n += 1;
    }
    let rest = [0x2c, 0x40, 0x64, 0x65, 0x81, 0xff, 0x80, 0x15, 0x1f, 0xc0];
    while n < 46 {
        all[n] = rest[n - 36];
        n += 1;
    }
    all
};

/// A packet that nearly is one.
fn packet(rng: &mut Xoshiro256PlusPlus, kind: QpKind, psns: (u32, u32)) -> Raw {
    let opcode = match (rng.random_range(0..4), kind) {
        (0, _) => OPCODES[rng.random_range(0..OPCODES.len())],
        (_, QpKind::Reliable) => rng.random_range(0..=0x12),
        (_, QpKind::Unreliable) => rng.random_range(0x20..=0x2b),
    };
    let near = |rng: &mut Xoshiro256PlusPlus, psn: u32| {
        psn.wrapping_add(rng.random_range(0..5)).wrapping_sub(1) & 0xff_ffff
    };
    let is_response = matches!(opcode, 0x0d..=0x12);
    let psn = match rng.random_range(0..8) {
        0 => rng.random_range(0..1 << 24),
        _ if is_response => near(rng, psns.1),
        1..5 => psns.0,
        _ => near(rng, psns.0),
    };
    if rng.random() {
        return good(rng, kind, psns);
    }
    let mut raw = Raw::new(opcode, psn);
    raw.ack = rng.random();
    raw.flags = rng.random::<u8>()
        & if rng.random_range(0..8) == 0 {
            0xff
        } else {
            0xc0
        };
    if rng.random_range(0..16) == 0 {
        raw.qp = rng.random_range(0..0x30);
    }
    if rng.random_range(0..16) == 0 {
        raw.pkey = rng.random();
    }
    raw.service = rng.random_range(0..4);
    let size = BYTES as u64;
    if matches!(opcode, 0x06 | 0x0a | 0x0b | 0x0c | 0x26 | 0x2a | 0x2b) {
        let (address, len) = match rng.random_range(0..4) {
            0 => (rng.random(), rng.random()),
            1 => (
                ADDRESS + size - rng.random_range(0..300),
                rng.random_range(0..600),
            ),
            _ => (
                ADDRESS + rng.random_range(0..size),
                rng.random_range(0..600),
            ),
        };
        let key = if rng.random_range(0..8) == 0 {
            rng.random()
        } else {
            KEY
        };
        raw = raw.reth(address, key, len);
    }
    if matches!(opcode, 0x0d | 0x0f | 0x10 | 0x11 | 0x12) {
        raw = raw.aeth(rng.random());
    }
    let len = match rng.random_range(0..4) {
        0 => 256,
        1 => 0,
        _ => rng.random_range(0..300),
    };
    let data: Vec<u8> = (0..len).map(|_| rng.random()).collect();
    raw.data(&data)
}

/// A packet as a peer may send it.
fn good(rng: &mut Xoshiro256PlusPlus, kind: QpKind, psns: (u32, u32)) -> Raw {
    let base: u8 = if kind == QpKind::Reliable { 0 } else { 0x20 };
    let len = rng.random_range(0..=256);
    let data: Vec<u8> = (0..len).map(|_| rng.random()).collect();
    let (at, len) = (ADDRESS + rng.random_range(0..7000), len as u32);
    let raw = |code: u8, psn| Raw::new(base + code, psn);
    match rng.random_range(0..if base == 0 { 6 } else { 4 }) {
        0 => raw(0x04, psns.0).data(&data),
        1 => raw(0x06, psns.0).reth(at, KEY, 700).data(&[1; 256]),
        2..4 => raw(0x0a, psns.0).reth(at, KEY, len).data(&data),
        4 => raw(0x0c, psns.0).reth(at, KEY, len * 4),
        _ => raw(0x11, psns.1).aeth(0x1f),
    }
}

/// Returns frames that the endpoint took, of `packets`.
fn attack(kind: QpKind, packets: u32, seed: u64) -> u64 {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut taken = 0;
    let mut sum = pollux_pmd::Balance::default();
    let mut left = packets;
    while left > 0 {
        // A queue pair that has failed is replaced by another.
        let options = PathOptions {
            timeout: 1,
            ..path(Mtu::B256)
        };
        let mut scene = Scene::new(kind, Access::ALL, &options);
        // Memory that was not granted, which neither side may write.
        let secret = crate::rig::memory(BYTES);
        let secret_buffer = scene.host.register(&secret, Access::LOCAL);
        secret.write(0, &[0xaa; BYTES]).unwrap();
        let to = scene.buffer.part(0, 700);
        // A message without one finds the endpoint not ready.
        for cookie in 0..rng.random_range(0..64) {
            scene.qp.post_receive(Receive { cookie, to }).unwrap();
        }
        for cookie in 0..16 {
            let payload = Payload::Indirect(scene.buffer.part(0, 600));
            let (to, immediate) = (scene.buffer.remote(), None);
            let put = Put {
                cookie,
                payload,
                to,
                immediate,
            };
            scene.qp.put(put).unwrap();
            if kind == QpKind::Reliable {
                let (from, to) = (scene.buffer.remote(), scene.buffer.part(0, 600));
                scene.qp.get(Get { cookie, from, to }).unwrap();
            }
        }
        scene.qp.doorbell();
        let mut psns = (PEER.1, OWN.1);
        let mut has_failed = false;
        for n in 0..400 {
            let raw = packet(&mut rng, kind, psns);
            let mut frame = raw.frame();
            let has_icrc = n % 4 == 0;
            let is_ahead = raw.psn.wrapping_sub(psns.0) & 0xff_ffff < 1 << 23;
            if has_icrc && is_ahead && kind == QpKind::Unreliable {
                psns.0 = (raw.psn + 1) & 0xff_ffff;
            }
            if !has_icrc {
                for _ in 0..rng.random_range(1..4) {
                    let at = rng.random_range(12..frame.len());
                    frame[at] ^= 1 << rng.random_range(0..8);
                }
                if rng.random_range(0..4) == 0 {
                    frame.truncate(rng.random_range(0..frame.len()));
                }
            } else if rng.random_range(0..4) == 0 && frame.len() > 60 {
                // Cut short, and right again.
                let len = rng.random_range(58..frame.len());
                frame.truncate(len);
                frame[16..18].copy_from_slice(&(len as u16 - 14).to_be_bytes());
                frame[38..40].copy_from_slice(&(len as u16 - 34).to_be_bytes());
                frame[24..26].fill(0);
                let sum = pollux_pmd_testkit::frames::naive_checksum(&frame[14..34]);
                frame[24..26].copy_from_slice(&sum.to_be_bytes());
                let icrc = icrc(&frame[..len - 4]);
                frame[len - 4..].copy_from_slice(&icrc);
            }
            if frame.is_empty() {
                continue;
            }
            scene.send_frame(&frame);
            for seen in scene.poll() {
                match seen.opcode {
                    // Acknowledged: what is expected next.
                    0x0d..=0x11 => psns.0 = (seen.psn + 1) & 0xff_ffff,
                    0x00..=0x0c => psns.1 = seen.psn,
                    _ => {}
                }
            }
            left = left.saturating_sub(1);
            let failed = |event: &Event| matches!(event, Event::Failed(_));
            has_failed |= scene.events().iter().any(failed);
            if has_failed && n % 4 == 3 {
                break;
            }
        }
        taken += scene.host.balance().delivered;
        sum.add(&scene.host.balance());
        let mut now = vec![0; BYTES];
        secret.read(0, &mut now).unwrap();
        assert!(now.iter().all(|&byte| byte == 0xaa), "seed {seed}");
        drop(secret_buffer);
        scene.stop();
    }
    println!("{sum}");
    taken
}

#[test]
fn a_hostile_peer_of_a_reliable_connection() {
    assert!(attack(QpKind::Reliable, 40_000, 1) > 1000);
}

#[test]
fn a_hostile_peer_of_an_unreliable_connection() {
    assert!(attack(QpKind::Unreliable, 40_000, 2) > 1000);
}

#[test]
#[ignore = "an hour long: ten million packets"]
fn ten_million_packets_of_a_hostile_peer() {
    for seed in 0..50 {
        let kind = if seed % 2 == 0 {
            QpKind::Reliable
        } else {
            QpKind::Unreliable
        };
        attack(kind, 200_000, 100 + seed);
    }
}
