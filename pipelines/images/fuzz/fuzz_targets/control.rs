//! Arbitrary lines as requests to a receiver and as messages to a manager. Each request has one reply;
//! what is read is written and read again; what is armed transfers images within its memory.
#![no_main]

use std::sync::Mutex;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use pollux_images::Shape;
use pollux_images::control::{
    Arm, Capabilities, Counts, Message, Node, Request, Role, Session, State,
};
use pollux_images::transfer::{Receivers, check_all};
use pollux_pipelines::Moment;

const SHAPE: Shape = Shape {
    rows: 6,
    columns: 7,
};

const MEMORY: u64 = 1 << 14;

#[derive(Default)]
struct Receiver {
    paused: Mutex<bool>,
}

impl Node for Receiver {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Role::Receiver, "fuzz", SHAPE)
    }

    fn check(&self, arm: &Arm) -> Result<(), String> {
        let Arm::Transfers(transfers) = arm else {
            return Err("a receiver has transfers".into());
        };
        let checked = check_all(transfers, SHAPE, 2, MEMORY);
        checked.map(drop).map_err(|error| error.to_string())
    }

    fn pause(&self, paused: bool) {
        *self.paused.lock().expect("no panic before") = paused;
    }

    fn counts(&self) -> Counts {
        Counts::default()
    }
}

/// Transfers an image as the run has it.
fn transfer(arm: &Arm) {
    let Arm::Transfers(transfers) = arm else {
        panic!("it was refused");
    };
    let image: Vec<u16> = (0..SHAPE.pixels() as u16).collect();
    let made = Receivers::new(transfers, SHAPE, MEMORY);
    let (mut receivers, mut ends) = made.expect("it was checked");
    for number in 0..3 {
        receivers
            .push(number, Moment(number), &image)
            .expect("the shape");
    }
    let mut bytes = 0;
    for end in &mut ends {
        if let Some(sub_image) = end.try_next() {
            let last = sub_image
                .regions()
                .iter()
                .map(|region| region.pixels())
                .sum::<usize>();
            assert!(last <= sub_image.pixels().len());
            bytes += size_of_val(sub_image.pixels()) as u64;
        }
    }
    assert!(bytes <= MEMORY);
}

fn node(data: &[u8]) {
    let session = Session::new(Receiver::default(), |line| {
        assert!(matches!(
            Message::parse(line.as_bytes()),
            Ok(Message::Event(_))
        ));
    });
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        let answer = session.answer(Ok(line));
        assert!(answer.ends_with('\n') && answer.matches('\n').count() == 1);
        assert!(matches!(
            Message::parse(answer.as_bytes()),
            Ok(Message::Reply(_))
        ));
        match session.state() {
            State::Arming => {
                let run = session.next(Duration::ZERO).expect("it is armed");
                transfer(&run.arm);
                session.ready();
            }
            State::Stopping => session.ended(Ok(())),
            State::Idle | State::Armed | State::Running | State::Paused => {}
        }
        let paused = *session.node().paused.lock().expect("no panic before");
        assert_eq!(paused, session.state() == State::Paused);
    }
}

fuzz_target!(|data: &[u8]| {
    node(data);
    let again = Request::parse(data).map(|request| Request::parse(request.line().as_bytes()));
    if let Ok(again) = again {
        again.expect("our own request");
    }
    let again = Message::parse(data).map(|message| Message::parse(message.line().as_bytes()));
    if let Ok(again) = again {
        again.expect("our own message");
    }
});
