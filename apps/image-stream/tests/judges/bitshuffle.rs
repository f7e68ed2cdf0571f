//! Bitshuffle and LZ4 as the formats define them, with no regard to speed: the bits of a block are
//! transposed one by one, and LZ4 stores them as literals.

/// Bytes of a block before compression (bitshuffle's default).
const BLOCK: usize = 8192;

/// An image of pixels of `element` bytes in the format of the HDF5 filter 32008.
pub(crate) fn compressed(image: &[u8], element: usize) -> Vec<u8> {
    let mut out = (image.len() as u64).to_be_bytes().to_vec();
    out.extend((BLOCK as u32).to_be_bytes());
    // A block has a multiple of 8 elements; the last ones that are no such multiple are stored raw.
    let whole = image.len() / (8 * element) * (8 * element);
    for block in image[..whole].chunks(BLOCK) {
        let literals = literals(&transposed(block, element));
        out.extend((literals.len() as u32).to_be_bytes());
        out.extend(literals);
    }
    out.extend(&image[whole..]);
    out
}

/// For each bit of an element that bit of all elements, eight in a byte.
fn transposed(block: &[u8], element: usize) -> Vec<u8> {
    let row = block.len() / element / 8;
    let mut out = vec![0; block.len()];
    for (n, value) in block.chunks(element).enumerate() {
        for bit in 0..8 * element {
            let is_set = value[bit / 8] >> (bit % 8) & 1;
            out[bit * row + n / 8] |= is_set << (n % 8);
        }
    }
    out
}

/// An LZ4 block without matches.
fn literals(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![(bytes.len().min(15) as u8) << 4];
    if bytes.len() >= 15 {
        let mut rest = bytes.len() - 15;
        while rest >= 255 {
            out.push(255);
            rest -= 255;
        }
        out.push(rest as u8);
    }
    out.extend(bytes);
    out
}
