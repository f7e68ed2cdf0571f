//! Frame numbers that jump, wrap and begin anew.

use pollux_pipelines::Moment;
use pollux_pmd::Cause;

use super::super::*;
use super::support::*;

/// Sends whole frames; the images that are delivered in each round.
struct Run {
    geometry: Geometry,
    placer: PacketPlacer<u16>,
    reader: ImageReader<u16>,
    now: u64,
}

impl Run {
    fn new(policy: DiscardPolicy) -> Self {
        let geometry = geometries()[3];
        let (placer, reader) = images(&geometry.config(policy)).unwrap();
        Self {
            geometry,
            placer,
            reader,
            now: 0,
        }
    }

    /// Sends a frame; how many packets were placed, and the numbers of the images, negative where
    /// they are not complete.
    fn frame(&mut self, number: u64) -> (usize, Vec<i64>) {
        let mut placed = Vec::new();
        for key in self.geometry.keys(number) {
            let payload = self.geometry.payload(key);
            let stream = self.geometry.stream(key);
            if self
                .placer
                .place(stream, &payload, Moment(self.now))
                .is_ok()
            {
                placed.push(key);
            }
        }
        self.now += 10 * TIMEOUT;
        let images = poll(&mut self.reader, self.now);
        for image in &images {
            let own = if image.number() == number {
                &placed[..]
            } else {
                &[]
            };
            check(&self.geometry, image, own);
        }
        let numbers = images.iter().map(|image| {
            let number = image.number() as i64;
            if image.is_complete() { number } else { -number }
        });
        (placed.len(), numbers.collect())
    }
}

#[test]
fn skipped_numbers_are_empty_images() {
    let mut run = Run::new(DiscardPolicy::Nothing);
    assert_eq!(run.frame(10), (128, vec![10]));
    assert_eq!(run.frame(13), (128, vec![-11, -12, 13]));
    // Beyond the buffers.
    assert_eq!(run.frame(45).1.len(), 32);
    let counts = run.reader.counts();
    assert_eq!((counts.received.get(), counts.empty.get()), (3, 2 + 31));
    assert_eq!(counts.missing.get(), 33 * 128);
    // Further than one packet is believed, and within the horizon.
    let (placed, images) = run.frame(45 + 50);
    assert_eq!((placed, images.len()), (128 - 31, 50));
    let counts = run.reader.counts();
    assert_eq!((counts.received.get(), counts.empty.get()), (4, 33 + 49));
    assert_eq!(counts.missing.get(), (33 + 49) * 128 + 31);
    let mut run = Run::new(DiscardPolicy::Empty);
    run.frame(10);
    assert_eq!(run.frame(13), (128, vec![13]));
    let counts = run.reader.counts();
    assert_eq!((counts.empty.get(), counts.discarded.get()), (2, 2));
}

/// A sender that begins anew loses no more packets than it takes to believe it, and no number between
/// is an empty image.
#[test]
fn numbers_that_jump_or_wrap_are_followed() {
    let mut run = Run::new(DiscardPolicy::Nothing);
    for (number, placed) in [
        (u64::from(u32::MAX) - 1, 128),
        (u64::from(u32::MAX), 128),
        // A counter of 32 bits wraps.
        (0, 128 - 31),
        (1, 128),
        // Far ahead.
        (1 << 33, 128 - 31),
        ((1 << 33) + 1, 128),
        (3, 128 - 31),
    ] {
        let sign = if placed == 128 { 1 } else { -1 };
        let images = vec![sign * number as i64];
        assert_eq!(run.frame(number), (placed, images), "{number}");
    }
    assert_eq!(run.reader.counts().empty.get(), 0);
    // More bits than are followed.
    assert_eq!(run.frame(1 << 40), (0, vec![]));
    let refused = run.placer.view().balance().dropped_for(Cause::OutOfWindow);
    assert!(refused >= 128, "{refused}");
}

#[test]
fn an_announced_run_loses_nothing() {
    let mut run = Run::new(DiscardPolicy::Nothing);
    for first in [5, 5, 0, 7, 1 << 20, 0] {
        for number in first..first + 3 {
            assert_eq!(run.frame(number), (128, vec![number as i64]));
        }
        run.reader.begin_anew();
    }
    assert_eq!(run.reader.counts().empty.get(), 0);
    // Without the announcement its numbers are late.
    run.frame(20);
    run.frame(21);
    assert_eq!(run.frame(15), (0, vec![]));
    assert!(run.placer.view().balance().dropped_for(Cause::Late) > 0);
}

/// A consumer that keeps half of the images, here and there, costs no other one.
#[test]
fn images_that_are_held_cost_no_others() {
    let mut run = Run::new(DiscardPolicy::Nothing);
    let geometry = run.geometry;
    let mut held = Vec::new();
    for number in 0..500 {
        for key in geometry.keys(number) {
            let payload = geometry.payload(key);
            let placed = run.placer.place(geometry.stream(key), &payload, Moment(0));
            assert_eq!(placed, Ok(()), "{key:?}");
        }
        let mut images = poll(&mut run.reader, 0);
        assert_eq!(images.len(), 1);
        if number % 7 == 0 && held.len() < 16 {
            held.append(&mut images);
        }
    }
    assert_eq!(held.len(), 16);
    for image in held {
        check(&geometry, &image, &geometry.keys(image.number()));
    }
}

#[test]
fn a_reader_that_holds_all_images_loses_frames_and_no_pixels() {
    let mut run = Run::new(DiscardPolicy::Empty);
    let geometry = run.geometry;
    let mut held = Vec::new();
    for number in 0..40 {
        for key in geometry.keys(number) {
            let payload = geometry.payload(key);
            let placed = run.placer.place(geometry.stream(key), &payload, Moment(0));
            assert_eq!(placed.is_ok(), number < 32, "{key:?}");
        }
        held.extend(poll(&mut run.reader, 0));
    }
    let refused = run
        .placer
        .view()
        .balance()
        .dropped_for(run.placer.no_buffer());
    assert_eq!(refused, 8 * 128);
    assert_eq!(held.len(), 32);
    for image in held.drain(..) {
        check(&geometry, &image, &geometry.keys(image.number()));
    }
    assert_eq!(run.frame(40), (128, vec![40]));
    assert_eq!(run.reader.counts().empty.get(), 8);
}

/// The rest of a frame in which the detector paused for two seconds is late: the frame is delivered once.
#[test]
fn a_pause_in_a_frame_delivers_it_once() {
    let mut run = Run::new(DiscardPolicy::Nothing);
    let geometry = run.geometry;
    assert_eq!(run.frame(10), (128, vec![10]));
    let keys = geometry.keys(11);
    let (first, rest) = keys.split_at(40);
    let mut place = |keys: &[_], now| {
        let place = |&key| {
            let payload = geometry.payload(key);
            run.placer
                .place(geometry.stream(key), &payload, Moment(now))
        };
        let placed: Vec<_> = keys.iter().map(place).collect();
        let images = poll(&mut run.reader, now + 10 * TIMEOUT);
        let images = images
            .iter()
            .map(|image| (image.number(), image.is_complete()));
        (placed, images.collect::<Vec<_>>())
    };
    let now = run.now;
    assert_eq!(place(first, now), (vec![Ok(()); 40], vec![(11, false)]));
    let later = now + 2_000_000_000;
    assert_eq!(place(rest, later), (vec![Err(Cause::Late); 88], vec![]));
    run.now = later;
    assert_eq!(run.frame(12), (128, vec![12]));
    let counts = run.reader.counts();
    assert_eq!((counts.received.get(), counts.empty.get()), (3, 0));
}
