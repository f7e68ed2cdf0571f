//! Writes the seed inputs of the targets into `corpus/`, with the project's own writer: `cargo run
//! --example seeds` in this folder. Inputs found by a fuzzer lie beside them.

use std::fs;
use std::path::Path;

use pollux_images::Shape;
use pollux_images::bitshuffle::Bitshuffle;
use pollux_images::formats::{Detector, Header, write_packet};
use pollux_images::sparse::{Compressed, CsrCompressor, encode_dense};
use pollux_pipelines::simd::Simd;

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
    sparse();
    bitshuffle();
}

/// A sparse and a dense record of an image with a peak, one behind the other; and an image.
fn sparse() {
    let shape = Shape {
        rows: 6,
        columns: 40,
    };
    let mut image = vec![0_i16; shape.pixels()];
    image[85..88].copy_from_slice(&[3, 90, 4]);
    image[200] = i16::MIN;
    let mut compressor = CsrCompressor::<i16>::new(Simd::SCALAR, shape, 3).expect("small");
    let mut bytes = Vec::new();
    if let Compressed::Sparse(csr) = compressor.compress(&image).expect("the shape") {
        csr.encode(1, &mut bytes);
    }
    encode_dense(2, shape, 3_i16, &image, &mut bytes).expect("the shape");
    save("sparse", "records", &bytes);
    let pixels = image.iter().flat_map(|pixel| pixel.to_le_bytes());
    let pixels: Vec<u8> = [5, 39, 3, 0].into_iter().chain(pixels).collect();
    save("sparse", "image", &pixels);
}

/// A chunk of several blocks with pixels behind the last one, for each size of a pixel.
fn bitshuffle() {
    for (choice, pixel_size) in [1, 2, 4, 8].into_iter().enumerate() {
        let image: Vec<u8> = (0..21 * pixel_size).map(|n| (n % 5) as u8).collect();
        let bitshuffle = Bitshuffle::with_block(Simd::SCALAR, pixel_size, 8 * pixel_size);
        let mut bitshuffle = bitshuffle.expect("a group");
        let mut chunk = vec![0; bitshuffle.max_len(image.len())];
        let len = bitshuffle.compress_chunk(&image, &mut chunk);
        chunk.truncate(len.expect("room"));
        let input = [&[choice as u8][..], &chunk].concat();
        save("bitshuffle", &format!("pixels-of-{pixel_size}"), &input);
    }
}
