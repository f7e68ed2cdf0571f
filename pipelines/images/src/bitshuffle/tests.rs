use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;

fn codec(simd: Simd, pixel_size: usize, block: usize) -> Bitshuffle {
    Bitshuffle::with_block(simd, pixel_size, block).unwrap()
}

fn chunk(codec: &mut Bitshuffle, image: &[u8]) -> Vec<u8> {
    let mut chunk = vec![0xEE; codec.max_len(image.len())];
    let len = codec.compress_chunk(image, &mut chunk).unwrap();
    chunk.truncate(len);
    chunk
}

/// Planes bit by bit, as their definition says.
fn planes(image: &[u8], pixel_size: usize) -> Vec<u8> {
    let elements = image.len() / pixel_size;
    let mut planes = vec![0; image.len()];
    for plane in 0..8 * pixel_size {
        for element in 0..elements {
            let bit = image[element * pixel_size + plane / 8] >> (plane % 8) & 1;
            planes[plane * elements / 8 + element / 8] |= bit << (element % 8);
        }
    }
    planes
}

/// A decompressor of one LZ4 block, as the format's description has it
/// (lz4_Block_format.md of the LZ4 project).
fn lz4(block: &[u8]) -> Vec<u8> {
    fn number(bytes: &mut impl Iterator<Item = u8>, nibble: u8) -> usize {
        let mut sum = usize::from(nibble);
        if nibble == 15 {
            loop {
                let byte = bytes.next().unwrap();
                sum += usize::from(byte);
                if byte != 255 {
                    break;
                }
            }
        }
        sum
    }
    let (mut out, mut bytes) = (Vec::new(), block.iter().copied());
    while let Some(token) = bytes.next() {
        for _ in 0..number(&mut bytes, token >> 4) {
            out.push(bytes.next().unwrap());
        }
        let Some(low) = bytes.next() else { break };
        let offset = usize::from(u16::from_le_bytes([low, bytes.next().unwrap()]));
        for _ in 0..number(&mut bytes, token & 15) + 4 {
            out.push(out[out.len() - offset]);
        }
    }
    out
}

/// Pixels of few significant bits, in runs.
fn image(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    (0..bytes)
        .map(|i| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            ((state >> 33) as u8) & if i % 2 == 0 { 0x1F } else { (i >> 9) as u8 & 1 }
        })
        .collect()
}

#[test]
fn planes_are_those_of_the_definition_at_each_level() {
    for pixel_size in [1, 2, 4, 8] {
        for groups in [1, 2, 7, 8, 9, 15, 16, 17, 64, 131] {
            let block = image(8 * groups * pixel_size, (groups * pixel_size) as u64);
            let expected = planes(&block, pixel_size);
            for simd in Simd::all() {
                let mut planes = vec![0xEE; block.len()];
                transpose::to_planes(simd, pixel_size, &block, &mut planes);
                assert_eq!(
                    planes, expected,
                    "{simd:?}, {pixel_size} bytes, {groups} groups"
                );
                let mut back = vec![0xEE; block.len()];
                transpose::from_planes(simd, pixel_size, &planes, &mut back);
                assert_eq!(back, block, "{simd:?}, {pixel_size} bytes, {groups} groups");
            }
        }
    }
}

#[test]
fn a_chunk_is_a_header_then_blocks_then_the_last_pixels() {
    // Two blocks, a shorter one of 16 pixels, and 5 pixels behind it.
    let image = image(2 * (2 * 4096 + 16 + 5), 3);
    let chunk = chunk(&mut Bitshuffle::new(Simd::best(), 2).unwrap(), &image);
    let (header, mut rest) = chunk.split_at(HEADER_LEN);
    assert_eq!(header, [0, 0, 0, 0, 0, 0, 0x40, 0x2A, 0, 0, 0x20, 0]);
    for block in [&image[..8192], &image[8192..16384], &image[16384..16416]] {
        let (length, data) = rest.split_first_chunk().unwrap();
        let (data, behind) = data.split_at(u32::from_be_bytes(*length) as usize);
        assert_eq!(lz4(data), planes(block, 2));
        rest = behind;
    }
    assert_eq!(rest, &image[16416..]);
}

#[test]
fn images_of_any_length_come_back() {
    for (pixel_size, block) in [(1, 8), (1, 8192), (2, 128), (2, 8192), (4, 96), (8, 8192)] {
        for pixels in (0..40).chain([63, 64, 65, 127, 1000, 4095, 4096, 4097, 20_011]) {
            let image = image(pixels * pixel_size, pixels as u64);
            let mut scalar = codec(Simd::SCALAR, pixel_size, block);
            let expected = chunk(&mut scalar, &image);
            for simd in Simd::all() {
                let mut codec = codec(simd, pixel_size, block);
                assert_eq!(chunk(&mut codec, &image), expected);
                let mut back = vec![0xEE; image.len() + 3];
                assert_eq!(
                    codec.decompress_chunk(&expected, &mut back),
                    Ok(image.len())
                );
                assert_eq!(back[..image.len()], image);
                assert_eq!(back[image.len()..], [0xEE; 3]);
                let mut back = vec![0xEE; image.len()];
                codec
                    .decompress(&expected[HEADER_LEN..], &mut back)
                    .unwrap();
                assert_eq!(back, image);
            }
        }
    }
}

#[test]
fn what_cannot_be_compressed_fits_into_max_len() {
    let mut state = 1u64;
    let noise: Vec<u8> = (0..100_008)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .collect();
    for block in [16, 64, 8192, 1 << 20] {
        let mut codec = codec(Simd::best(), 2, block);
        let chunk = chunk(&mut codec, &noise);
        assert!(chunk.len() > noise.len());
        let mut short = vec![0; chunk.len() - 1];
        assert!(matches!(
            codec.compress(&noise, &mut short[HEADER_LEN..]),
            Err(BitshuffleError::Buffer { .. })
        ));
        let mut short = vec![0; codec.max_len(noise.len()) - 1];
        assert!(codec.compress_chunk(&noise, &mut short).is_err());
    }
}

#[test]
fn bad_configurations_are_refused() {
    let block =
        |pixel_size, block| Bitshuffle::with_block(Simd::best(), pixel_size, block).unwrap_err();
    assert_eq!(block(3, 8192), BitshuffleError::PixelSize(3));
    assert_eq!(block(0, 8192), BitshuffleError::PixelSize(0));
    for (pixel_size, bytes) in [(2, 0), (2, 8), (4, 48), (1, MAX_BLOCK + 8)] {
        let multiple = 8 * pixel_size;
        assert_eq!(
            block(pixel_size, bytes),
            BitshuffleError::Block { bytes, multiple }
        );
    }
    let mut codec = Bitshuffle::new(Simd::best(), 4).unwrap();
    let error = BitshuffleError::Image {
        bytes: 10,
        pixel_size: 4,
    };
    assert_eq!(codec.compress(&[0; 10], &mut [0; 99]), Err(error.clone()));
    assert_eq!(codec.decompress(&[0; 10], &mut [0; 10]), Err(error));
}

#[test]
fn every_truncation_every_extension_and_a_wrong_header_are_refused() {
    let mut codec = Bitshuffle::new(Simd::best(), 2).unwrap();
    let image = image(2 * 5003, 9);
    let chunk = chunk(&mut codec, &image);
    let mut back = vec![0; image.len()];
    for len in 0..chunk.len() {
        let error = codec
            .decompress_chunk(&chunk[..len], &mut back)
            .unwrap_err();
        assert!(
            matches!(error, BitshuffleError::Length { .. }),
            "{len}: {error}"
        );
    }
    let mut long = chunk.clone();
    long.push(0);
    assert_eq!(
        codec.decompress_chunk(&long, &mut back),
        Err(BitshuffleError::Length {
            bytes: long.len(),
            needed: chunk.len()
        })
    );
    assert_eq!(
        codec.decompress_chunk(&chunk, &mut back[..image.len() - 2]),
        Err(BitshuffleError::Buffer {
            bytes: image.len() - 2,
            needed: image.len() as u64
        })
    );
    let with = |at: usize, bytes: &[u8]| {
        let mut chunk = chunk.clone();
        chunk[at..at + bytes.len()].copy_from_slice(bytes);
        chunk
    };
    for (at, bytes) in [
        (0, [0xFF; 8].as_slice()), // the longest image
        (7, &[1]),                 // an odd number of bytes
        (8, &[0xFF; 4]),           // the longest block
        (8, &[0, 0, 0, 8]),        // half a group of pixels
        (8, &[0, 0, 0x10, 0]),     // a shorter block than the data's
        (12, &[0xFF; 4]),          // the longest LZ4 block
        (12, &[0; 4]),             // an empty one
    ] {
        assert!(
            codec.decompress_chunk(&with(at, bytes), &mut back).is_err(),
            "{at} {bytes:?}"
        );
    }
    // As the HDF5 filter does it.
    assert_eq!(
        codec.decompress_chunk(&with(8, &[0; 4]), &mut back),
        Ok(image.len())
    );
    assert_eq!(back, image);
}

proptest! {
    #[test]
    fn random_bytes_are_an_error_or_an_image(
        mut chunk in proptest::collection::vec(any::<u8>(), 0..400),
        len in 0u64..600,
        block in 0u32..40,
        pixel_size in prop::sample::select(vec![1usize, 2, 4, 8]),
        plausible in any::<bool>(),
    ) {
        if plausible && chunk.len() > 16 {
            chunk[..8].copy_from_slice(&len.to_be_bytes());
            chunk[8..12].copy_from_slice(&(block * 8 * pixel_size as u32).to_be_bytes());
            chunk[12..15].fill(0);
        }
        let mut codec = Bitshuffle::new(Simd::best(), pixel_size).unwrap();
        let mut image = vec![0; 500];
        if let Ok(len) = codec.decompress_chunk(&chunk, &mut image) {
            prop_assert!(len <= 500);
        }
        prop_assert!(codec.planes.len() <= DEFAULT_BLOCK.max(500));
        let _ = codec.decompress(&chunk, &mut image);
    }

    #[test]
    fn flipped_bits_never_panic(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 0u8..8), 1..4),
    ) {
        let mut codec = Bitshuffle::new(Simd::best(), 2).unwrap();
        let image = image(20_000, 5);
        let mut chunk = chunk(&mut codec, &image);
        for (at, bit) in flips {
            *at.get_mut(&mut chunk) ^= 1 << bit;
        }
        let _ = codec.decompress_chunk(&chunk, &mut vec![0; image.len()]);
    }
}

/// The frames of a JUNGFRAU module, and the references that they were converted to; empty where
/// the data is not available.
fn recorded() -> Vec<PathBuf> {
    let data = std::env::var_os("POLLUX_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let Ok(folder) = std::fs::read_dir(data.join("jungfrau")) else {
        println!("skipped: no recorded data at {}", data.display());
        return Vec::new();
    };
    folder.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn real_frames_come_back() {
    for path in recorded() {
        let image = std::fs::read(&path).unwrap();
        // Raw pixels, and photons of single precision.
        let pixel_size = image.len() / (512 * 1024);
        let mut codec = Bitshuffle::new(Simd::best(), pixel_size).unwrap();
        let best = chunk(&mut codec, &image);
        assert!(best.len() < image.len(), "{}", path.display());
        let mut scalar = Bitshuffle::new(Simd::SCALAR, pixel_size).unwrap();
        assert_eq!(chunk(&mut scalar, &image), best);
        let mut back = vec![0; image.len()];
        scalar.decompress_chunk(&best, &mut back).unwrap();
        assert_eq!(back, image, "{}", path.display());
    }
}
