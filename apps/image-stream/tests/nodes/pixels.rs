//! Pixels that a receiver has, against those that the detector sends.

use pollux_emulator::images::config::ImagesConfig;
use pollux_emulator::images::stack::Stack;
use pollux_emulator::images::synthesis::Synthesis;
use pollux_pmd::lcore::StopFlag;

/// Bytes of a row, and of a packet: four rows.
pub(crate) const ROW: usize = 1024 * 2;
const PACKET: usize = 4 * ROW;

/// Bytes of an image.
pub(crate) const IMAGE: usize = 512 * ROW;

/// The images of the detector's stack, as they are sent.
pub(crate) fn truth() -> Vec<Vec<u8>> {
    let config = ImagesConfig {
        interfaces: 2,
        stack: 3,
        ..ImagesConfig::default()
    };
    let stack = Stack::synthetic(&Synthesis::new(&config).unwrap(), &StopFlag::new()).unwrap();
    (0..3).map(|place| stack.image(place).unwrap()).collect()
}

/// Whether `image` is one of the detector's, but for packets that did not come and are blank; which one.
pub(crate) fn find(truth: &[Vec<u8>], image: &[u8]) -> Option<usize> {
    truth.iter().position(|sent| {
        let mut packets = sent.chunks(PACKET).zip(image.chunks(PACKET));
        let is_any = image.iter().any(|&byte| byte != 0);
        is_any && packets.all(|(sent, got)| got == sent || got.iter().all(|&byte| byte == 0))
    })
}

/// Asserts that each image of a file is one of the detector's, whole; their number.
#[track_caller]
pub(crate) fn assert_whole(file: &[u8]) -> u64 {
    assert_eq!(file.len() % IMAGE, 0, "a part of an image");
    let truth = truth();
    let mut found = [0; 3];
    for (n, image) in file.chunks(IMAGE).enumerate() {
        let which = find(&truth, image).unwrap_or_else(|| panic!("image {n} is of no one kind"));
        found[which] += 1;
    }
    // The stack is sent again and again.
    assert!(
        file.len() < 9 * IMAGE || found.iter().all(|&n| n > 0),
        "{found:?}"
    );
    (file.len() / IMAGE) as u64
}
