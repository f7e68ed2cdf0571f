//! Stacks that sources write into memory: the images of packets, losses on the way, sources that lie, die or begin
//! anew, and a receiver that does.

mod ends;
mod receiver;
mod source;
mod stranger;
mod wire;

use pollux_emulator::images::synthesis::Synthesis;
use pollux_images::formats::{Header, Layout};
use pollux_images::stack::StackLayout;
use serde_json::Value;
use zerocopy::IntoBytes as _;

use self::receiver::{Receiver, patient};
use self::source::Source;
use self::stranger::Stranger;
use self::wire::Wire;
use crate::capture::{Capture, detector};
use crate::replay::replay;

const STAGES: &str = "[[stage]]\nname = \"veto\"\nmin_photons = 10.0\nmin_pixels = 5\n\
                      [[stage]]\nname = \"peaks\"\nmin_peaks = 3\n[[stage]]\nname = \"compress\"\n";
/// Lines of an image of a module.
const LINES: u64 = 128;

/// A receiver of whole images, in a file.
fn whole(capture: &Capture, rows: usize, file: &str) -> String {
    format!(
        "[[receiver]]\nfile = \"{}\"\ntransfer = {{ name = \"all\", region = [{{ first_row = 0, rows = {rows}, \
         first_column = 0, columns = 1024, offset = 0, stride = 1024 }}] }}\n",
        capture.path(file).display()
    )
}

fn lines(run: &Value) -> &Value {
    &run["rdma"]["lines"]
}

/// Files, vetoes, peaks and losses are those of the same images as packets, bit by bit; also where lines of two
/// modules are lost.
#[test]
fn stacks_give_the_images_of_packets() {
    const FRAMES: u64 = 4;
    for lost in [0.0, 0.01] {
        let mut emulated = detector(FRAMES);
        emulated.modules = 2;
        emulated.stack = 2;
        emulated.faults.lost = lost;
        let capture = Capture::new(emulated.clone());
        let config = |file: &str| {
            let more = STAGES.to_owned() + &whole(&capture, 1024, file);
            patient(&capture.configure("i16", &more), 2)
        };
        let packets = replay(&capture, &config("packets.raw"), &[]);

        let receiver = Receiver::start(&capture, &config("stacks.raw"), "s", FRAMES);
        let sent = Source::new(&capture, "r", true).send(&emulated, receiver.address());
        let run = receiver.report();
        assert!(sent.complete, "{sent:?}");
        for part in ["frames", "packets", "images"] {
            assert_eq!(run[part], packets[part], "{part}");
        }
        let read = |file| std::fs::read(capture.path(file)).unwrap();
        assert!(read("stacks.raw") == read("packets.raw"), "lost: {lost}");
        let missing = capture.report.done.faults.lost;
        assert_eq!(missing > 0, lost > 0.0);
        assert_eq!(lines(&run)["from_wire"], FRAMES * 2 * LINES);
        assert_eq!(lines(&run)["delivered"], FRAMES * 2 * LINES - missing);
        assert_eq!(lines(&run)["balanced"], true);
        assert_eq!(run["ledger"]["balanced"], true);
        assert_eq!(
            (&run["rdma"]["stacks"], &run["rdma"]["sources"]),
            (&FRAMES.into(), &2.into())
        );
    }
}

/// Packets of lines and announcements are lost on the way. Each line is right or missing, and all missing ones
/// are counted.
#[test]
fn losses_on_the_way_are_known_line_by_line() {
    const FRAMES: u64 = 10;
    let mut emulated = detector(FRAMES);
    emulated.stack = 2;
    let capture = Capture::new(emulated.clone());
    let config = patient(&capture.write(&whole(&capture, 512, "lossy.raw")), 2);
    // Stacks 1 and 4, the last one, are not announced by their last lines.
    let wire = Wire::new(&capture, 37, &[1, 4]);
    let receiver = Receiver::start(&capture, &config, "wr", FRAMES);
    let sent = Source::new(&capture, "ws", true).send(&emulated, receiver.address());
    let run = receiver.report();
    let dropped = wire.end();
    assert!(
        sent.complete && sent.stacks.unwrap().repeated >= 1,
        "{sent:?}"
    );
    assert!(dropped > 0);
    // What is lost between two announcements, the second says; not what follows the last one.
    let missed = run["rdma"]["missed_packets"].as_u64().unwrap();
    assert!(
        (1..=dropped).contains(&missed),
        "{missed} of {dropped}: {run}"
    );
    assert_eq!(run["frames"]["received"], FRAMES);

    let file = std::fs::read(capture.path("lossy.raw")).unwrap();
    let (pixels, _) = file.as_chunks::<2>();
    assert_eq!(pixels.len() as u64, FRAMES * 512 * 1024);
    let (mut missing, line) = (0, 4 * 1024);
    let both = [0, 1].map(|n| capture.raw(emulated.first_frame + n));
    for (n, image) in pixels.chunks(512 * 1024).enumerate() {
        let expected = &both[n % 2];
        for (found, expected) in image.chunks(line).zip(expected.chunks(line)) {
            let found: Vec<_> = found
                .iter()
                .map(|&pixel| u16::from_le_bytes(pixel))
                .collect();
            if found.iter().all(|&pixel| pixel == u16::MAX) {
                missing += 1;
            } else {
                assert!(found == expected, "image {n}");
            }
        }
    }
    assert!(missing >= 2, "{missing}");
    assert_eq!(lines(&run)["dropped"]["line-lost"], missing);
    assert_eq!(lines(&run)["from_wire"], FRAMES * LINES);
    assert_eq!(run["packets"]["missing"], missing);
}

/// The announcement of a stack of one module is lost, also that of the last one: it is repeated, and no line of either
/// module comes too late.
#[test]
fn an_announcement_of_one_of_two_modules_is_repeated() {
    const FRAMES: u64 = 4;
    let mut emulated = detector(FRAMES);
    emulated.modules = 2;
    let capture = Capture::new(emulated.clone());
    let config = patient(&capture.write(""), 2);
    // Of the module that announces it first.
    let wire = Wire::new(&capture, u64::MAX, &[0, 1]);
    let receiver = Receiver::start(&capture, &config, "wr", FRAMES);
    let sent = Source::new(&capture, "ws", true).send(&emulated, receiver.address());
    let run = receiver.report();
    assert_eq!(wire.end(), 2);
    assert!(sent.complete && sent.stacks.unwrap().repeated >= 1);
    // The line that should have announced it.
    let dropped = serde_json::json!({ "line-lost": 2 });
    assert_eq!(lines(&run)["dropped"], dropped, "{run}");
    assert_eq!(run["frames"]["partial"], 2);
}

/// A source that announces what it must not, repeats itself, writes nonsense, and dies in the middle of a stack;
/// then one that works. What the first one did is counted, and the images of the second one are complete.
#[test]
fn a_source_that_lies_and_dies_leaves_the_next_one_alone() {
    let mut emulated = detector(4);
    emulated.first_frame = 2;
    let capture = Capture::new(emulated.clone());
    let config = patient(&capture.write("[rdma]\nstacks = 2\n"), 1);
    let receiver = Receiver::start(&capture, &config, "s", 5);
    let layout = Layout::jungfrau(1, 2).unwrap();
    let stack = StackLayout::new(&layout, 1);
    {
        let mut stranger = Stranger::connect(&capture, receiver.address());
        assert_eq!(stranger.buffers(), 2);
        // Announcements without a buffer, a message, and a PUT beyond the buffer, which is dropped.
        stranger.announce(2);
        stranger.announce(5);
        stranger.send(7);
        stranger.put(0, stack.bytes() - 8, &[0x55; 64]);
        // A line of another detector, in a stack that is announced three times.
        let mut header = Header::new(layout.detector());
        header.detector ^= 0x40;
        stranger.put(0, stack.pixel_bytes(), header.as_bytes());
        stranger.announce(0);
        stranger.announce(0);
        stranger.announce(u32::MAX);
        stranger.wait_until_taken(1);
        // The announcement of stack 1 is missing, and that of the next one is for both.
        stranger.announce(2);
        stranger.wait_until_taken(3);
        // A line of frame 1, and no announcement.
        let mut header = Header::new(layout.detector());
        header.frame_number = 1.into();
        let mut line = vec![1; stack.pixel_bytes()];
        line.extend_from_slice(header.as_bytes());
        for (part, bytes) in line.chunks(2048).enumerate() {
            stranger.put(1, part * 2048, bytes);
        }
    }
    let sent = Source::new(&capture, "r", true).send(&emulated, receiver.address());
    assert!(sent.complete, "{sent:?}");
    let run = receiver.report();
    let rdma = &run["rdma"];
    let counts = ["sources", "refused", "unannounced", "stacks"];
    let counts = counts.map(|count| rdma[count].as_u64().unwrap());
    assert_eq!(counts, [2, 3, 2, 8], "{rdma}");
    // The next source may have to repeat itself too, on a busy machine.
    assert!(rdma["repeated"].as_u64() >= Some(2), "{rdma}");
    assert_eq!(run["ledger"]["dropped"]["access"], 1);
    assert_eq!(lines(&run)["dropped"]["detector-type"], 1);
    // Of the first stack all but one line, of the last one too.
    let lost = 2 * (LINES - 1) + 2 * LINES;
    assert_eq!(lines(&run)["dropped"]["line-lost"], lost);
    assert_eq!(lines(&run)["delivered"], 4 * LINES + 1);
    assert_eq!(
        (&run["frames"]["complete"], &run["frames"]["partial"]),
        (&4.into(), &1.into())
    );
}

/// A source sees that its receiver is killed. The next receiver, at the same place, gets what the source sends then.
#[test]
fn a_receiver_that_is_killed_begins_anew() {
    let mut emulated = detector(0);
    let synthesis = Synthesis::new(&emulated).unwrap();
    let capture = Capture::new(detector(4));
    let config = patient(&capture.write(""), 1);
    let receiver = Receiver::start(&capture, &config, "s", 1 << 20);
    let address = receiver.address();
    let mut source = Source::new(&capture, "r", true);
    let sent = source.send_until_gone(&synthesis, &emulated, address, || receiver.kill());
    let stacks = sent.stacks.unwrap();
    assert!(!sent.complete && stacks.taken > 0, "{sent:?}");

    emulated.frames = 3;
    let receiver = Receiver::start_at(&capture, &config, "s", 3, address);
    let sent = source.send(&emulated, address);
    let run = receiver.report();
    assert!(sent.complete, "{sent:?}");
    assert_eq!(
        (&run["frames"]["complete"], &run["rdma"]["sources"]),
        (&3.into(), &1.into())
    );
}
