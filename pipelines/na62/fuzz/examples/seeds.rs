//! Writes the seed inputs of the targets into `corpus/`, with the project's own writers: `cargo run
//! --example seeds` in this folder. Inputs found by a fuzzer lie beside them.

use std::fs;
use std::path::Path;

use pollux_na62::formats::hits::{HitsWriter, MAX_FRAME};
use pollux_na62::formats::mep::MepWriter;
use pollux_na62::formats::mtp::{MAX_PACKET, MtpWriter, Primitive, SOURCE_RICH};
use pollux_na62::formats::tel62::{Edge, write_tel62};
use pollux_na62::rich::Hit;

fn save(target: &str, name: &str, bytes: &[u8]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target);
    fs::create_dir_all(&folder).expect("the folder");
    fs::write(folder.join(name), bytes).expect("the file");
}

fn hits() {
    let events: [(u64, &[u16]); 4] = [
        (100, &[3, 4, 900]),
        (101, &[]),
        (5000, &[0, 1951]),
        (5001, &[7]),
    ];
    for (name, events) in [("events", &events[..]), ("empty", &[])] {
        let mut writer = HitsWriter::new([0; MAX_FRAME], SOURCE_RICH, 1, 9).expect("room");
        for (timestamp, pms) in events {
            let hits: Vec<_> = pms.iter().map(|&pm| Hit { pm, fine: 8 }).collect();
            writer.push(*timestamp, &hits).expect("room");
        }
        let (bytes, len) = writer.finish();
        save("hits", name, &bytes[..len]);
        save(
            "chain",
            name,
            &[&[0, 1, 0, 0, len as u8], &bytes[..len]].concat(),
        );
    }
    let made = [2, 0, 10, 1, 8, 1, 2, 3, 4, 9, 90, 200, 255];
    let late = [2, 1, 10, 200, 4, 1, 2, 3, 4];
    let damaged = [0x41, 2, 10, 30, 4, 1, 2, 3, 4];
    save(
        "chain",
        "made",
        &[&made[..], &late, &damaged, &made].concat(),
    );
}

fn mtp() {
    let mut writer = MtpWriter::new([0; MAX_PACKET], SOURCE_RICH, 2).expect("room");
    for timestamp in [0x1234_5600, 0x1234_56ff, 0x1234_5700] {
        let primitive = Primitive {
            id: 0x8001,
            timestamp,
            fine: 3,
        };
        writer.push(primitive).expect("room");
    }
    let (bytes, len) = writer.finish();
    save("mtp", "primitives", &bytes[..len]);
}

fn mep() {
    let edge = |fpga, slot: u64, leading| Edge {
        fpga,
        tdc: 1,
        channel: 9,
        leading,
        time: slot << 8 | 77,
    };
    let edges = [
        edge(0, 1000, true),
        edge(0, 1000, false),
        edge(2, 1001, true),
    ];
    let mut payload = [0; 256];
    let len = write_tel62(&mut payload, 3, 1, 1000, &edges).expect("room");
    let mut writer = MepWriter::new([0; 512], SOURCE_RICH, 3, 0xff_ffff).expect("room");
    writer.push(1000, false, &payload[..len]).expect("room");
    writer.push(1001, true, b"").expect("room");
    let (bytes, len) = writer.finish();
    save("mep", "edges", &bytes[..len]);
}

fn main() {
    hits();
    mtp();
    mep();
    save(
        "l0_record",
        "record",
        &[1, 2, 1, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 1, 0xe0],
    );
    let chain = "[[stage]]\nname = \"decompress\"\nboards = [1, 0]\n\n[[stage]]\nname = \"build\"\n\
                 deadline_us = 300\nmax_open = 16\n\n[[stage]]\nname = \"rings\"\n\n\
                 [[stage]]\nname = \"decide\"\n";
    save("stages", "chain", chain.as_bytes());
}
