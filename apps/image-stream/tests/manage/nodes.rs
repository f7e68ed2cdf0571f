//! Nodes for tests: a source that counts frames, and a receiver with real transfers.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pollux_app::lines::{Address, Events, Server, Service};
use pollux_images::Shape;
use pollux_images::control::{
    Arm, ArmedRun, Capabilities, Counts, Event, MAX_LINE, Node, OverrunWatch, Role, Session, State,
};
use pollux_images::transfer::{DEFAULT_MEMORY, Receivers, SubImages, TransferView};
use pollux_pipelines::Moment;

pub(crate) const SHAPE: Shape = Shape {
    rows: 16,
    columns: 32,
};

const ROUND: Duration = Duration::from_millis(1);

/// What both nodes of a test share: the frames on their wire, and the pause of the source.
#[derive(Default)]
pub(crate) struct Wire {
    pub(crate) frames: AtomicU64,
    pub(crate) is_paused: AtomicBool,
    /// Order of the starts, `r` and `s`.
    pub(crate) starts: Mutex<String>,
}

/// How a receiver behaves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Habit {
    /// It takes all sub-images at once.
    Fast,
    /// It takes none before the source is paused.
    Slow,
    /// As `Slow`, but never tells that it has room.
    Mute,
    /// It cannot open its files.
    Broken,
}

pub(crate) struct TestNode {
    role: Role,
    wire: Arc<Wire>,
    frames: AtomicU64,
    views: Mutex<Vec<TransferView>>,
}

impl Node for TestNode {
    fn capabilities(&self) -> Capabilities {
        let is_source = self.role == Role::Source;
        Capabilities {
            max_rate_hz: is_source.then_some(2000.0),
            pixel_bytes: (!is_source).then_some(2),
            memory_bytes: (!is_source).then_some(DEFAULT_MEMORY),
            ..Capabilities::new(self.role, "test 1", SHAPE)
        }
    }

    fn check(&self, arm: &Arm) -> Result<(), String> {
        match (self.role, arm) {
            (Role::Source, Arm::Source(_)) | (Role::Receiver, Arm::Transfers(_)) => Ok(()),
            _ => Err("this is for another node".into()),
        }
    }

    fn pause(&self, paused: bool) {
        if self.role == Role::Source {
            self.wire.is_paused.store(paused, Ordering::SeqCst);
        }
    }

    fn counts(&self) -> Counts {
        let views = self.views.lock().unwrap();
        Counts {
            frames: self.frames.load(Ordering::SeqCst),
            transfers: views.iter().map(TransferView::counts).collect(),
        }
    }
}

/// A program on threads of the test. Dropping it is as its death.
pub(crate) struct Program {
    pub(crate) session: Arc<Session<TestNode>>,
    server: Option<Server>,
    thread: Option<JoinHandle<()>>,
    quit: Arc<AtomicBool>,
}

impl Program {
    pub(crate) fn source(socket: &Path, wire: &Arc<Wire>) -> Self {
        let address = Address::Unix(socket.into());
        Self::start(&address, Role::Source, wire, |session, run| {
            let Arm::Source(source) = &run.arm else {
                return Err("no source".into());
            };
            let (node, limit) = (session.node(), source.frames.unwrap_or(0));
            while !run.stop.is_set() {
                if !node.wire.is_paused.load(Ordering::SeqCst) {
                    let sent = node.frames.fetch_add(1, Ordering::SeqCst) + 1;
                    node.wire.frames.store(sent, Ordering::SeqCst);
                    if sent == limit {
                        break;
                    }
                }
                thread::sleep(ROUND);
            }
            Ok(())
        })
    }

    pub(crate) fn receiver(socket: &Path, wire: &Arc<Wire>, habit: Habit) -> Self {
        Self::receiver_at(&Address::Unix(socket.into()), wire, habit)
    }

    pub(crate) fn receiver_at(address: &Address, wire: &Arc<Wire>, habit: Habit) -> Self {
        Self::start(address, Role::Receiver, wire, move |session, run| {
            receive(session, run, habit)
        })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> String {
        self.server.as_ref().unwrap().address().to_string()
    }

    fn start(
        address: &Address,
        role: Role,
        wire: &Arc<Wire>,
        work: impl Fn(&Session<TestNode>, &ArmedRun) -> Result<(), String> + Send + 'static,
    ) -> Self {
        let node = TestNode {
            role,
            wire: Arc::clone(wire),
            frames: AtomicU64::new(0),
            views: Mutex::default(),
        };
        let (events, quit) = (Events::default(), Arc::new(AtomicBool::new(false)));
        let publish = events.clone();
        let session = Arc::new(Session::new(node, move |line| publish.send(line)));
        let clients = Arc::clone(&session);
        let service = Service::new(MAX_LINE, move |line| clients.answer(line)).with_events(&events);
        let server = Server::start("test", address, service, &[]).unwrap();
        let (program, ends) = (Arc::clone(&session), Arc::clone(&quit));
        let body = move || {
            while !ends.load(Ordering::SeqCst) {
                if let Some(run) = program.next(ROUND) {
                    let how = work_with(&program, &run, &work);
                    program.ended(how);
                }
            }
        };
        Self {
            session,
            server: Some(server),
            thread: Some(thread::spawn(body)),
            quit,
        }
    }

    /// It ends without a word.
    pub(crate) fn die(&mut self) {
        drop(self.server.take());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.die();
        self.quit.store(true, Ordering::SeqCst);
        self.session
            .answer(Ok(br#"{"version":1,"request":"stop"}"#));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The part that all nodes have: waits for the start, unless the run itself has to do so.
fn work_with(
    session: &Session<TestNode>,
    run: &ArmedRun,
    work: &impl Fn(&Session<TestNode>, &ArmedRun) -> Result<(), String>,
) -> Result<(), String> {
    let node = session.node();
    node.frames.store(0, Ordering::SeqCst);
    if node.role == Role::Receiver {
        return work(session, run);
    }
    session.ready();
    wait_for_start(session, run, 's');
    work(session, run)
}

fn wait_for_start(session: &Session<TestNode>, run: &ArmedRun, mark: char) {
    while !session.is_started(ROUND) && !run.stop.is_set() {}
    if session.state() == State::Running {
        session.node().wire.starts.lock().unwrap().push(mark);
    }
}

/// Takes each frame of the wire as an image of its number, until it is stopped and has all.
fn receive(session: &Session<TestNode>, run: &ArmedRun, habit: Habit) -> Result<(), String> {
    let (node, Arm::Transfers(transfers)) = (session.node(), &run.arm) else {
        return Err("no transfers".into());
    };
    if habit == Habit::Broken {
        return Err("images.h5: no space left on the device".into());
    }
    let made = Receivers::<u16>::new(transfers, SHAPE, DEFAULT_MEMORY);
    let (mut receivers, mut ends) = made.map_err(|error| error.to_string())?;
    let views = receivers.views();
    node.views.lock().unwrap().clone_from(&views);
    let new_watch = |view: &TransferView| OverrunWatch::new(Some(view.name().to_owned()));
    let mut watches: Vec<_> = views.iter().map(new_watch).collect();
    session.ready();
    wait_for_start(session, run, 'r');
    let (mut number, mut takes) = (0, habit == Habit::Fast);
    loop {
        let is_last = run.stop.is_set();
        let sent = node.wire.frames.load(Ordering::SeqCst);
        while number < sent {
            let image = vec![number as u16; SHAPE.pixels()];
            let pushed = receivers.push(number, Moment(number), &image);
            pushed.map_err(|error| error.to_string())?;
            number += 1;
            node.frames.store(number, Ordering::SeqCst);
            takes |= node.wire.is_paused.load(Ordering::SeqCst);
            if takes {
                take(&mut ends);
            }
        }
        takes |= node.wire.is_paused.load(Ordering::SeqCst);
        if takes {
            take(&mut ends);
        }
        for (watch, view) in watches.iter_mut().zip(&views) {
            let event = watch.poll_transfer(view);
            let is_told =
                |event: &Event| habit != Habit::Mute || !matches!(event, Event::Room { .. });
            if let Some(event) = event.filter(is_told) {
                session.publish(event);
            }
        }
        if is_last {
            return Ok(());
        }
        thread::sleep(ROUND);
    }
}

fn take(ends: &mut [SubImages<u16>]) {
    for end in ends {
        while let Some(sub_image) = end.try_next() {
            let number = sub_image.number() as u16;
            assert!(sub_image.pixels().iter().all(|pixel| *pixel == number));
        }
    }
}
