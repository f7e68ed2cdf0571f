//! Messages as documented, and the states of a node.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::Shape;
use crate::transfer::{DEFAULT_MEMORY, Receivers, TransferConfig, check_all};
use pollux_pipelines::Moment;
use pollux_pmd::lcore::StopFlag;

const PAGE: &str = include_str!("../../../../docs/formats/images-control.md");

const LONG: Duration = Duration::from_mins(1);

/// A receiver that keeps what it was asked for.
#[derive(Default)]
struct Receiver {
    paused: AtomicBool,
}

impl Node for Receiver {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            pixel_bytes: Some(2),
            memory_bytes: Some(DEFAULT_MEMORY),
            ..Capabilities::new(Role::Receiver, "test 1", Shape::JUNGFRAU_MODULE)
        }
    }

    fn check(&self, arm: &Arm) -> Result<(), String> {
        let Arm::Transfers(transfers) = arm else {
            return Err("a receiver has transfers".into());
        };
        let checked = check_all(transfers, Shape::JUNGFRAU_MODULE, 2, DEFAULT_MEMORY);
        checked.map(drop).map_err(|error| error.to_string())
    }

    fn pause(&self, paused: bool) {
        self.paused.store(paused, Ordering::Relaxed);
    }

    fn counts(&self) -> Counts {
        Counts {
            frames: 7,
            transfers: Vec::new(),
        }
    }
}

fn session() -> (Session<Receiver>, Arc<Mutex<Vec<Event>>>) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let published = Arc::clone(&events);
    let publish = move |line: String| match Message::parse(line.as_bytes()) {
        Ok(Message::Event(event)) => published.lock().unwrap().push(event),
        other => panic!("{line}: {other:?}"),
    };
    (Session::new(Receiver::default(), publish), events)
}

fn ask(session: &Session<Receiver>, request: &Request) -> Reply {
    let line = session.answer(Ok(request.line().as_bytes()));
    match Message::parse(line.as_bytes()) {
        Ok(Message::Reply(reply)) => reply,
        other => panic!("{line}: {other:?}"),
    }
}

fn refused(session: &Session<Receiver>, request: &Request) -> String {
    match ask(session, request) {
        Reply::Error { text } => text,
        other => panic!("{request:?}: {other:?}"),
    }
}

fn done(session: &Session<Receiver>, request: &Request, state: State) {
    assert_eq!(ask(session, request), Reply::Done { state }, "{request:?}");
    assert_eq!(session.state(), state);
}

fn transfers() -> Request {
    Request::Arm(Arm::Transfers(vec![TransferConfig::new("all")]))
}

/// Every example of the page is a line, read and written again as it stands; every message has one.
#[test]
fn the_documented_lines_are_read_and_written() {
    let examples = PAGE.lines().filter_map(|line| line.strip_prefix("    {"));
    let mut kinds = std::collections::BTreeSet::new();
    for example in examples {
        let line = format!("{{{example}\n");
        let (again, shown) = if line.contains("\"request\"") {
            let request = Request::parse(line.as_bytes()).unwrap();
            (request.line(), format!("{request:?}"))
        } else {
            let message = Message::parse(line.as_bytes()).unwrap();
            (message.line(), format!("{message:?}"))
        };
        assert_eq!(again, line);
        let kind: Vec<_> = shown.split([' ', '{', '(', '}', ')']).take(2).collect();
        kinds.insert(kind.join(" ").trim().to_owned());
    }
    let all = [
        "Arm Source",
        "Arm Transfers",
        "Capabilities",
        "Event Error",
        "Event Finished",
        "Event Overrun",
        "Event Room",
        "Pause",
        "Reply Capabilities",
        "Reply Done",
        "Reply Error",
        "Reply Status",
        "Resume",
        "Start",
        "Status",
        "Stop",
    ];
    assert_eq!(Vec::from_iter(kinds), all);
    for word in [MAX_LINE.to_string(), format!("`version` | {VERSION}")] {
        assert!(PAGE.contains(&word), "{word}");
    }
}

#[test]
fn what_is_no_request_is_refused() {
    let (session, _) = session();
    let arm = |what: &str| format!("{{\"version\":1,\"request\":{{\"arm\":{what}}}}}");
    for (line, said) in [
        (String::new(), "this is no request"),
        ("status".into(), "this is no request"),
        ("\u{0}".into(), "this is no request"),
        ("[1]".into(), "this is no request"),
        ("[".repeat(60_000), "this is no request"),
        (" ".repeat(MAX_LINE + 1), "longer than 65536 bytes"),
        ("{\"request\":\"status\"}".into(), "`version`"),
        (
            "{\"version\":2,\"question\":\"status\"}".into(),
            "version 2 is not supported: 1 is",
        ),
        ("{\"version\":-1,\"request\":\"status\"}".into(), "-1"),
        ("{\"version\":1}".into(), "`request`"),
        ("{\"version\":1,\"request\":\"fly\"}".into(), "`fly`"),
        (
            "{\"version\":1,\"request\":\"arm\"}".into(),
            "this is no request",
        ),
        ("{\"version\":1,\"request\":\"stop\",\"x\":1}".into(), "`x`"),
        (arm("{\"source\":{\"frames\":-1}}"), "-1"),
        (arm("{\"source\":{\"fames\":1}}"), "`fames`"),
        (arm("{\"source\":{}}"), "a receiver has transfers"),
        (arm("{\"transfers\":[{}]}"), "`name`"),
        (
            arm("{\"transfers\":[{\"name\":\"a\",\"region\":[{\"rows\":513,\"columns\":1}]}]}"),
            "receiver `a`: region rows 0..513, columns 0..1: an image has 512 x 1024 pixels",
        ),
        (
            arm("{\"transfers\":[{\"name\":\"a\",\"buffers\":65536}]}"),
            "bytes of memory, and 4294967296 are allowed",
        ),
    ] {
        let answer = session.answer(Ok(line.as_bytes()));
        assert!(
            answer.contains(said) && answer.starts_with("{\"version\":1,\"reply\":{\"error\":"),
            "{line:.100}: {answer}"
        );
    }
    let answer = session.answer(Err("16 clients are here already"));
    assert!(answer.contains("{\"error\":{\"text\":\"16 clients are here already\"}}"));
    assert_eq!(session.state(), State::Idle);
    assert!(session.next(Duration::ZERO).is_none());
}

#[test]
fn a_node_goes_through_its_states() {
    let (session, events) = session();
    for (request, said) in [
        (
            Request::Start,
            "`start` is for a node that is armed: it is idle",
        ),
        (
            Request::Pause,
            "`pause` is for a node that is running: it is idle",
        ),
        (
            Request::Resume,
            "`resume` is for a node that is paused: it is idle",
        ),
    ] {
        assert_eq!(refused(&session, &request), said);
    }
    done(&session, &Request::Stop, State::Idle);
    for end in [Ok(()), Err("the disk is full".to_owned())] {
        done(&session, &transfers(), State::Arming);
        assert!(refused(&session, &transfers()).contains("the node is arming: stop its run first"));
        let run = session.next(LONG).expect("it is armed");
        assert!(session.next(Duration::ZERO).is_none(), "once only");
        assert!(refused(&session, &Request::Start).contains("it is arming"));
        session.ready();
        assert!(!session.is_started(Duration::ZERO));
        done(&session, &Request::Start, State::Running);
        assert!(session.is_started(LONG));
        done(&session, &Request::Start, State::Running);
        for _ in 0..2 {
            done(&session, &Request::Pause, State::Paused);
            assert!(session.node().paused.load(Ordering::Relaxed) && session.is_started(LONG));
        }
        done(&session, &Request::Resume, State::Running);
        assert!(!session.node().paused.load(Ordering::Relaxed));
        done(&session, &Request::Pause, State::Paused);
        assert!(!run.stop.is_set());
        done(&session, &Request::Stop, State::Stopping);
        assert!(run.stop.is_set() && !session.is_started(Duration::ZERO));
        assert!(refused(&session, &Request::Resume).contains("it is stopping"));
        session.ended(end);
        assert!(!session.node().paused.load(Ordering::Relaxed));
        let counts = session.node().counts();
        let status = Status {
            state: State::Idle,
            counts,
        };
        assert_eq!(ask(&session, &Request::Status), Reply::Status(status));
    }
    let counts = session.node().counts();
    let text = "the disk is full".into();
    assert_eq!(
        *events.lock().unwrap(),
        [Event::Finished { counts }, Event::Error { text }]
    );
}

fn wait_for(session: &Session<Receiver>, state: State) {
    let begun = Instant::now();
    while session.state() != state {
        assert!(begun.elapsed() < LONG, "{state}");
        thread::yield_now();
    }
}

/// The threads of a program and of its server.
#[test]
fn threads_wait_for_requests() {
    let (session, events) = session();
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        let program = scope.spawn(|| {
            let run = session.next(LONG).expect("it is armed");
            session.ready();
            assert!(session.is_started(LONG));
            tell.send(()).unwrap();
            while !run.stop.is_set() {
                thread::yield_now();
            }
            session.ended(Ok(()));
            // Stopped before its start.
            let run = session.next(LONG).expect("it is armed again");
            session.ready();
            assert!(!session.is_started(LONG) && run.stop.is_set());
            session.ended(Ok(()));
        });
        for is_started in [true, false] {
            // The program may be further when the reply is here.
            let state = State::Arming;
            assert_eq!(ask(&session, &transfers()), Reply::Done { state });
            wait_for(&session, State::Armed);
            if is_started {
                done(&session, &Request::Start, State::Running);
                // A run that is stopped at once may not see its start.
                told.recv_timeout(LONG).unwrap();
            }
            ask(&session, &Request::Stop);
            wait_for(&session, State::Idle);
        }
        program.join().unwrap();
    });
    assert_eq!(events.lock().unwrap().len(), 2);
}

/// Runs one after the other, one that panics among them; the last one is ended by the program's own end.
#[test]
fn runs_are_served_until_the_program_ends() {
    let (session, events) = session();
    let (quit, runs) = (StopFlag::new(), AtomicUsize::new(0));
    let started = AtomicUsize::new(0);
    let body = |run: &ArmedRun| {
        let n = runs.fetch_add(1, Ordering::Relaxed);
        session.ready();
        assert!(n != 1, "a defect");
        if !session.wait_for_start(run) {
            return Err("stopped before its start".into());
        }
        started.fetch_add(1, Ordering::Relaxed);
        while !run.stop.is_set() {
            thread::yield_now();
        }
        Ok(())
    };
    thread::scope(|scope| {
        let program = scope.spawn(|| session.serve(&quit, body));
        for n in 0..4 {
            let state = State::Arming;
            assert_eq!(ask(&session, &transfers()), Reply::Done { state });
            if n == 1 {
                wait_for(&session, State::Idle);
                continue;
            }
            wait_for(&session, State::Armed);
            if n != 2 {
                let before = started.load(Ordering::Relaxed);
                done(&session, &Request::Start, State::Running);
                // A run that is stopped at once may not see its start.
                let begun = Instant::now();
                while started.load(Ordering::Relaxed) == before {
                    assert!(begun.elapsed() < LONG, "run {n} does not see its start");
                    thread::yield_now();
                }
            }
            if n == 3 {
                quit.stop();
            } else {
                ask(&session, &Request::Stop);
            }
            wait_for(&session, State::Idle);
        }
        program.join().unwrap();
    });
    let ends: Vec<_> = events.lock().unwrap().drain(..).collect();
    let finished = |event: &Event| matches!(event, Event::Finished { .. });
    assert_eq!(
        ends.iter().map(finished).collect::<Vec<_>>(),
        [true, false, false, true]
    );
    let said =
        |event: &Event, text: &str| matches!(event, Event::Error { text: found } if found == text);
    assert!(
        said(&ends[1], "its thread has panicked") && said(&ends[2], "stopped before its start")
    );
}

#[test]
fn overruns_are_found_in_counters() {
    let config = TransferConfig {
        buffers: 4,
        ..TransferConfig::new("slow")
    };
    let shape = Shape {
        rows: 1,
        columns: 1,
    };
    let (mut receivers, mut ends) = Receivers::new(&[config], shape, 1 << 20).unwrap();
    let view = receivers.views().remove(0);
    let mut watch = OverrunWatch::new(Some("slow".into()));
    let mut push = |images: u64| {
        for number in 0..images {
            receivers.push(number, Moment(0), &[1_u16]).unwrap();
        }
    };
    push(4);
    assert_eq!(watch.poll_transfer(&view), None);
    let receiver = Some("slow".to_owned());
    for images in [3, 5] {
        push(images);
        let receiver = receiver.clone();
        let overrun = Event::Overrun { receiver, images };
        assert_eq!(watch.poll_transfer(&view), Some(overrun));
        assert_eq!(watch.poll_transfer(&view), None);
    }
    drop(ends[0].try_next());
    assert_eq!(watch.poll_transfer(&view), None, "a quarter is free");
    drop(ends[0].try_next());
    let room = Event::Room { receiver };
    assert_eq!(watch.poll_transfer(&view), Some(room));
    assert_eq!(watch.poll_transfer(&view), None);
}

proptest! {
    /// Neither side of the link panics, whatever comes, and each line has one answer.
    #[test]
    fn any_bytes_have_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let (session, _) = session();
        let answer = session.answer(Ok(&bytes));
        prop_assert!(answer.ends_with('\n') && answer.matches('\n').count() == 1);
        prop_assert!(matches!(Message::parse(answer.as_bytes()), Ok(Message::Reply(_))));
        let _ = Message::parse(&bytes);
    }
}
