//! Arbitrary bytes as chunks of bitshuffle and LZ4, and as images that become chunks. A chunk that is
//! accepted is read alike by every set of instructions, and its image is compressed and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pollux_images::bitshuffle::{Bitshuffle, BitshuffleError, HEADER_LEN};
use pollux_pipelines::simd::Simd;

/// Longest image that a chunk may have.
const LONGEST: usize = 1 << 16;

/// The image of a chunk; an error is the same for every set of instructions.
fn decompress(pixel_size: usize, chunk: &[u8]) -> Result<Vec<u8>, BitshuffleError> {
    let mut first = None;
    for simd in Simd::all() {
        let mut image = vec![0xEE; LONGEST];
        let mut bitshuffle = Bitshuffle::new(simd, pixel_size)?;
        let read = bitshuffle.decompress_chunk(chunk, &mut image);
        let read = read.map(|len| {
            assert!(image[len..].iter().all(|&byte| byte == 0xEE));
            image.truncate(len);
            image
        });
        assert_eq!(*first.get_or_insert_with(|| read.clone()), read);
    }
    first.expect("there is one set of instructions")
}

/// The image of its own chunk, in blocks of so many groups of eight pixels.
fn compress(pixel_size: usize, groups: usize, image: &[u8]) {
    let block = groups * 8 * pixel_size;
    let image = &image[..image.len() - image.len() % pixel_size];
    let mut first = None;
    for simd in Simd::all() {
        let bitshuffle = Bitshuffle::with_block(simd, pixel_size, block);
        let mut bitshuffle = bitshuffle.expect("whole groups");
        let mut chunk = vec![0; bitshuffle.max_len(image.len())];
        let len = bitshuffle.compress_chunk(image, &mut chunk);
        chunk.truncate(len.expect("the longest chunk has room"));
        assert!(*first.get_or_insert_with(|| chunk.clone()) == chunk);
        let mut again = vec![0; image.len()];
        let blocks = bitshuffle.decompress(&chunk[HEADER_LEN..], &mut again);
        assert!(blocks.is_ok() && again == image);
    }
    let chunk = first.expect("there is one set of instructions");
    assert!(decompress(pixel_size, &chunk).is_ok_and(|again| again == image));
    assert!(decompress(pixel_size, &chunk[..chunk.len() - 1]).is_err());
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, data)) = data.split_first() else {
        return;
    };
    let pixel_size = 1 << (choice % 4);
    if let Ok(image) = decompress(pixel_size, data) {
        compress(pixel_size, 1 + usize::from(choice / 4), &image);
    }
    compress(pixel_size, 1 + usize::from(choice / 4), data);
});
