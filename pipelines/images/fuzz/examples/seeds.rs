//! Writes the seed inputs of the targets into `corpus/`, with the project's own writer: `cargo run
//! --example seeds` in this folder. Inputs found by a fuzzer lie beside them.

use std::fs;
use std::path::Path;

use pollux_images::formats::{Detector, Header, write_packet};

fn save(target: &str, name: &str, bytes: &[u8]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target);
    fs::create_dir_all(&folder).expect("the folder");
    fs::write(folder.join(name), bytes).expect("the file");
}

fn main() {
    let mut header = Header::new(Detector::Eiger);
    header.frame_number = 77.into();
    header.packet_number = 63.into();
    let mut packet = [0; 48 + 1024];
    write_packet(&header, &[5; 1024], &mut packet).expect("room");
    save("sls", "eiger", &packet);
    save("sls", "short", &packet[..48]);
    // Two whole frames of both ports, then one that lacks packets.
    let whole = [0xFF, 0, 0, 0, 0xFF, 0, 1, 0, 0x30, 3, 0, 70];
    let next = [0xF0, 0, 0, 1, 0xFF, 0, 1, 0];
    save(
        "images",
        "frames",
        &[&[0][..], &whole, &next, &whole].concat(),
    );
    save(
        "images",
        "by-identifier",
        &[&[3][..], &whole, &next].concat(),
    );
}
