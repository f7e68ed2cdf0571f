//! Several loops that place rows of the same images.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use pollux_pipelines::Moment;
use pollux_pmd_testkit::guard::listen;

use super::super::*;
use super::support::*;

const FRAMES: u64 = 60;

/// Whether a packet is lost on the way.
fn is_lost(key: Key) -> bool {
    (key.frame + 3 * key.packet as u64 + key.module as u64).is_multiple_of(97)
}

/// Each loop has an interface; frames are compared with brute force while others are written.
#[test]
fn loops_place_the_interfaces_of_the_same_images() {
    let geometry = geometries()[2];
    let (placer, mut reader) = images::<u16>(&geometry.config(DiscardPolicy::Nothing)).unwrap();
    let loops = geometry.modules * geometry.interfaces;
    let mut placers = vec![placer];
    for _ in 1..loops {
        placers.push(placers[0].for_another_loop().unwrap());
    }
    let views: Vec<_> = placers.iter().map(PacketPlacer::view).collect();
    // Frames that each loop has sent, and that have been delivered.
    let sent: Vec<_> = (0..loops).map(|_| AtomicU64::new(0)).collect();
    let (read, mut delivered) = (AtomicU64::new(0), Vec::new());
    thread::scope(|scope| {
        for (own, placer) in placers.into_iter().enumerate() {
            let (sent, read) = (&sent[own], &read);
            scope.spawn(move || send(&geometry, own, placer, sent, read));
        }
        while delivered.len() < FRAMES as usize {
            // A frame is over when all loops have passed it.
            let passed = sent.iter().map(|sent| sent.load(Ordering::Acquire)).min();
            let Some(image) = reader.poll(Moment(passed.unwrap() * TIMEOUT)) else {
                thread::yield_now();
                continue;
            };
            let mut keys = geometry.keys(image.number());
            keys.retain(|&key| !is_lost(key));
            check(&geometry, &image, &keys);
            delivered.push(image.number());
            read.store(image.number(), Ordering::Release);
        }
    });
    assert!(delivered.iter().copied().eq(0..FRAMES));
    let placed: u64 = views.iter().map(|view| view.balance().delivered).sum();
    let all = (0..FRAMES).flat_map(|frame| geometry.keys(frame));
    let lost = all.filter(|&key| is_lost(key)).count() as u64;
    assert_eq!(
        (reader.counts().missing.get(), placed),
        (lost, FRAMES * 100 - lost)
    );
}

/// One loop: all frames of its own interface, no further ahead of the reader than there are buffers.
fn send(
    geometry: &Geometry,
    own: usize,
    mut placer: PacketPlacer<u16>,
    sent: &AtomicU64,
    read: &AtomicU64,
) {
    for frame in 0..FRAMES {
        while frame > read.load(Ordering::Acquire) + 10 {
            thread::yield_now();
        }
        let mut keys = geometry.keys(frame);
        keys.retain(|&key| usize::from(geometry.stream(key).0) == own);
        keys.rotate_left(frame as usize % 25);
        for key in keys.into_iter().filter(|&key| !is_lost(key)) {
            let at = Moment(frame * TIMEOUT);
            let placed = placer.place(geometry.stream(key), &geometry.payload(key), at);
            assert_eq!(placed, Ok(()), "{key:?}");
        }
        sent.store(frame + 1, Ordering::Release);
    }
}

#[test]
fn images_are_received_without_allocation() {
    let geometry = geometries()[3];
    let (mut placer, mut reader) = images::<u16>(&geometry.config(DiscardPolicy::Nothing)).unwrap();
    let frames = (0..40).map(|n| if n < 20 { n } else { n + 3 });
    let packets: Vec<_> = frames
        .flat_map(|frame| geometry.keys(frame))
        .filter(|key| key.packet != 9 || key.frame % 5 != 0)
        .map(|key| (geometry.stream(key), geometry.payload(key), key.frame))
        .collect();
    let (images, noise) = listen(|ear| {
        ear.during(|| {
            let mut images = 0;
            for (stream, payload, frame) in &packets {
                let at = Moment(frame * 2 * TIMEOUT);
                assert!(placer.place(*stream, payload, at).is_ok());
                while let Some(image) = reader.poll(at) {
                    let lost = image.losses().map(|loss| loss.rows.len()).sum::<usize>();
                    assert_eq!(lost == 0, image.is_complete());
                    images += 1;
                }
            }
            images
        })
    });
    noise.assert_none();
    // Three numbers were skipped.
    assert_eq!(images, 43);
}
