//! Several receivers of one image stream.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::*;

/// Long enough for any machine.
const LONG: Duration = Duration::from_mins(1);

fn fan_out(configs: &[TransferConfig]) -> (Receivers<u32>, Vec<SubImages<u32>>) {
    Receivers::new(configs, SHAPE, DEFAULT_MEMORY).unwrap()
}

/// Waits until each receiver has a free buffer.
fn wait_for_buffers(views: &[TransferView]) {
    let begun = Instant::now();
    while views.iter().any(|view| view.free() == 0) {
        assert!(begun.elapsed() < LONG, "{views:?}");
        thread::yield_now();
    }
}

fn check(sub_image: &SubImage<u32>) {
    let image = image(sub_image.number() as u32, SHAPE);
    let mut pixels = expected(&image, SHAPE, sub_image.regions(), sub_image.pixels().len());
    // What no region has a place for is zero from the start on.
    for pixel in pixels.iter_mut().filter(|pixel| **pixel == UNTOUCHED) {
        *pixel = 0;
    }
    assert_eq!(sub_image.pixels(), pixels, "image {}", sub_image.number());
    let bytes: Vec<u8> = pixels
        .iter()
        .flat_map(|pixel| pixel.to_ne_bytes())
        .collect();
    assert_eq!(sub_image.as_ref(), bytes);
}

/// Each gets all pixels of its own regions, on its own thread, while images go on.
#[test]
fn two_receivers_at_once_get_exactly_their_pixels() {
    const IMAGES: u64 = 3000;
    let left = TransferConfig {
        region: vec![region((1, 5), (0, 3))],
        ..TransferConfig::new("left")
    };
    let corners = TransferConfig {
        region: vec![
            Region {
                offset: 2,
                stride: Some(7),
                ..region((0, 3), (7, 3))
            },
            Region {
                offset: 5,
                stride: Some(7),
                ..region((6, 2), (0, 2))
            },
        ],
        every: 3,
        phase: 2,
        buffers: 4,
        ..TransferConfig::new("corners")
    };
    let (mut receivers, ends) = fan_out(&[left, corners]);
    let views = receivers.views();
    let read = |mut end: SubImages<u32>| {
        thread::spawn(move || {
            let mut numbers = Vec::new();
            while !end.is_ended() {
                if let Some(sub_image) = end.next(LONG) {
                    check(&sub_image);
                    assert_eq!(sub_image.at(), Moment(sub_image.number() * 7));
                    numbers.push(sub_image.number());
                }
            }
            numbers
        })
    };
    let threads: Vec<_> = ends.into_iter().map(read).collect();
    for number in 0..IMAGES {
        // As a source that is paused: no sub-image is lost in this test.
        wait_for_buffers(&views);
        let pushed = receivers.push(number, Moment(number * 7), &image(number as u32, SHAPE));
        pushed.unwrap();
    }
    drop(receivers);
    let [left, corners] = [0, 1].map(|n| views[n].counts());
    let mut numbers = threads.into_iter().map(|thread| thread.join().unwrap());
    assert_eq!(numbers.next().unwrap(), (0..IMAGES).collect::<Vec<_>>());
    let third: Vec<_> = (0..IMAGES).filter(|number| number % 3 == 2).collect();
    assert_eq!(numbers.next().unwrap(), third);
    assert_eq!((left.images, left.overrun), (IMAGES, 0));
    assert_eq!(left.bytes, IMAGES * 15 * 4);
    assert_eq!((corners.images, corners.overrun), (IMAGES / 3, 0));
    assert_eq!(corners.bytes, IMAGES / 3 * (9 + 4) * 4);
    assert_eq!(views[0].free(), views[0].buffers());
}

/// It loses its own sub-images alone, and what it reads stays as it was.
#[test]
fn a_slow_receiver_loses_its_own_sub_images() {
    let slow = TransferConfig {
        buffers: 3,
        ..TransferConfig::new("slow")
    };
    let fast = TransferConfig {
        buffers: 1,
        ..TransferConfig::new("fast")
    };
    let (mut receivers, mut ends) = fan_out(&[slow, fast]);
    let views = receivers.views();
    let mut push = |number: u64| {
        let image = image(number as u32, SHAPE);
        receivers.push(number, Moment(number), &image).unwrap();
    };
    let mut held = Vec::new();
    for number in 0..10 {
        push(number);
        let fast = ends[1].try_next().expect("there is a buffer");
        assert_eq!(fast.number(), number);
        check(&fast);
        if number == 0 {
            held.extend(ends[0].try_next());
        }
    }
    assert_eq!((views[0].overrun(), views[1].overrun()), (7, 0));
    assert_eq!((views[0].free(), views[1].free()), (0, 1));
    held.extend(std::iter::from_fn(|| ends[0].try_next()));
    let numbers: Vec<_> = held.iter().map(SubImage::number).collect();
    assert_eq!(numbers, [0, 1, 2]);
    held.iter().for_each(check);
    // One buffer is free again, and the next image is taken.
    held.remove(1);
    assert_eq!(views[0].free(), 1);
    push(10);
    push(11);
    let next = ends[0].try_next().unwrap();
    assert_eq!((next.number(), views[0].overrun()), (10, 8));
    held.iter().chain([&next]).for_each(check);
    assert!(ends[0].try_next().is_none() && !ends[0].is_ended());
    drop(receivers);
    assert!(ends[0].next(LONG).is_none() && ends[0].is_ended());
    // A sub-image outlives its ring.
    check(&next);
}

#[test]
fn a_receiver_that_has_ended_is_left_alone() {
    let (mut receivers, mut ends) = fan_out(&[TransferConfig::new("a"), TransferConfig::new("b")]);
    let views = receivers.views();
    drop(ends.remove(0));
    for number in 0..40 {
        receivers.push(number, Moment(0), &image(0, SHAPE)).unwrap();
        assert!(ends[0].try_next().is_some());
    }
    assert!(views[0].is_closed() && !views[1].is_closed());
    assert_eq!((views[0].overrun(), views[0].free()), (0, 16));
    let refused = receivers.push(0, Moment(0), &[0; 3]).unwrap_err();
    assert!(refused.to_string().contains("3 pixels"));
    assert_eq!(views[1].counts().images, 40);
}

/// Sub-images may be dropped on any thread.
#[test]
fn buffers_come_back_from_other_threads() {
    let config = TransferConfig {
        buffers: 2,
        ..TransferConfig::new("passed on")
    };
    let (mut receivers, mut ends) = fan_out(&[config]);
    let view = receivers.views().remove(0);
    let (pass, passed) = mpsc::channel::<SubImage<u32>>();
    let checker = thread::spawn(move || passed.iter().inspect(check).count());
    for number in 0..2000 {
        wait_for_buffers(std::slice::from_ref(&view));
        let image = image(number as u32, SHAPE);
        receivers.push(number, Moment(0), &image).unwrap();
        pass.send(ends[0].try_next().unwrap()).unwrap();
    }
    drop(pass);
    assert_eq!(checker.join().unwrap(), 2000);
    assert_eq!((view.overrun(), view.counts().images), (0, 2000));
}

#[test]
fn memory_is_limited() {
    let config = TransferConfig {
        buffers: 65_536,
        ..TransferConfig::new("large")
    };
    let made = Receivers::<f32>::new(&[config], Shape::JUNGFRAU_MODULE, DEFAULT_MEMORY);
    let text = made.err().unwrap().to_string();
    assert!(
        text.contains("137438953472 bytes of memory, and 4294967296 are allowed"),
        "{text}"
    );
}
