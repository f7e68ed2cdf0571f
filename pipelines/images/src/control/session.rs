//! A node's side of the control link: its state, and the requests and events that change it.

use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use pollux_pmd::lcore::StopFlag;

use super::protocol::{Arm, Capabilities, Counts, Event, Message, Reply, Request, State, Status};

/// Interval at which a program that serves runs looks at its signals.
const ROUND: Duration = Duration::from_millis(20);

/// A program that is controlled: a detector or a receiver. Methods are called by the [`Session`], on the
/// thread that serves clients or at the end of a run. They return at once and do not use the session.
pub trait Node: Send + Sync {
    /// What the node is.
    fn capabilities(&self) -> Capabilities;

    /// Whether it can be armed so: the reason why not, with a remedy.
    ///
    /// # Errors
    /// The reason, as the manager shows it.
    fn check(&self, arm: &Arm) -> Result<(), String>;

    /// Suspends the run, or ends its pause.
    fn pause(&self, paused: bool);

    /// Counts of the run, or of the last one.
    fn counts(&self) -> Counts;
}

/// A run that the manager has armed.
#[derive(Clone, Debug)]
pub struct ArmedRun {
    /// Its configuration.
    pub arm: Arm,
    /// Ends the run, before or after its start.
    pub stop: StopFlag,
}

#[derive(Debug, Default)]
struct Run {
    state: State,
    armed: Option<ArmedRun>,
    /// The program has not taken it yet.
    is_new: bool,
}

/// A node under control: requests change its state, the program's thread takes its runs and reports
/// their ends, and events go to all clients. Neither waits for the other.
pub struct Session<N> {
    node: N,
    run: Mutex<Run>,
    changed: Condvar,
    publish: Box<dyn Fn(String) + Send + Sync>,
}

impl<N: Node> Session<N> {
    /// A node without a run. `publish` sends a line to all clients, and returns at once.
    pub fn new(node: N, publish: impl Fn(String) + Send + Sync + 'static) -> Self {
        Self {
            node,
            run: Mutex::default(),
            changed: Condvar::new(),
            publish: Box::new(publish),
        }
    }

    /// The node.
    pub fn node(&self) -> &N {
        &self.node
    }

    /// The state.
    pub fn state(&self) -> State {
        self.run().state
    }

    fn run(&self) -> MutexGuard<'_, Run> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer to a line, or to one that was refused for this reason, as a line.
    pub fn answer(&self, line: Result<&[u8], &str>) -> String {
        let request = line.map_err(str::to_owned).and_then(|line| {
            let request = Request::parse(line);
            request.map_err(|error| error.to_string())
        });
        let reply = request.and_then(|request| self.obey(request));
        Message::Reply(reply.unwrap_or_else(|text| Reply::Error { text })).line()
    }

    fn obey(&self, request: Request) -> Result<Reply, String> {
        let state = match request {
            Request::Capabilities => return Ok(Reply::Capabilities(self.node.capabilities())),
            Request::Status => {
                return Ok(Reply::Status(Status {
                    state: self.state(),
                    counts: self.node.counts(),
                }));
            }
            Request::Arm(arm) => self.arm(arm)?,
            Request::Start => self.go("start", State::Armed, State::Running)?,
            Request::Pause => self.go("pause", State::Running, State::Paused)?,
            Request::Resume => self.go("resume", State::Paused, State::Running)?,
            Request::Stop => self.stop(),
        };
        Ok(Reply::Done { state })
    }

    fn arm(&self, arm: Arm) -> Result<State, String> {
        self.node.check(&arm)?;
        let mut run = self.run();
        if run.state != State::Idle {
            return Err(format!("the node is {}: stop its run first", run.state));
        }
        let stop = StopFlag::new();
        *run = Run {
            state: State::Arming,
            armed: Some(ArmedRun { arm, stop }),
            is_new: true,
        };
        self.changed.notify_all();
        Ok(run.state)
    }

    /// From one state to another; a node that is there already stays there.
    fn go(&self, request: &str, from: State, to: State) -> Result<State, String> {
        let mut run = self.run();
        if run.state != from && run.state != to {
            return Err(format!(
                "`{request}` is for a node that is {from}: it is {}",
                run.state
            ));
        }
        run.state = to;
        // Under the lock: a pause must not reach the next run.
        self.node.pause(to == State::Paused);
        self.changed.notify_all();
        Ok(to)
    }

    /// A node without a run stays without one: a manager stops all nodes, whatever happened.
    fn stop(&self) -> State {
        let mut run = self.run();
        if let Some(armed) = &run.armed {
            armed.stop.stop();
            run.state = State::Stopping;
            self.changed.notify_all();
        }
        run.state
    }

    /// Executes runs one after the other, until `quit` is set, which ends the run in order first. `body`
    /// opens the resources of a run, says that it is [`ready`](Self::ready), waits for the
    /// [start](Self::wait_for_start), and returns at the end of the run. Each run has a thread of its own: it
    /// may keep off the CPUs of its loops.
    pub fn serve(&self, quit: &StopFlag, body: impl Fn(&ArmedRun) -> Result<(), String> + Sync) {
        while !quit.is_set() {
            if let Some(run) = self.next(ROUND) {
                let how = thread::scope(|scope| {
                    let named = thread::Builder::new().name("run".into());
                    let running = named.spawn_scoped(scope, || body(&run));
                    let running = running.map_err(|error| format!("no thread: {error}"))?;
                    while !running.is_finished() {
                        if quit.is_set() {
                            self.stop();
                        }
                        thread::sleep(ROUND);
                    }
                    let panicked = |_| Err("its thread has panicked".into());
                    running.join().unwrap_or_else(panicked)
                });
                self.ended(how);
            }
        }
    }

    /// The next armed run, if there is one within this time.
    pub fn next(&self, wait: Duration) -> Option<ArmedRun> {
        let waited = self
            .changed
            .wait_timeout_while(self.run(), wait, |run| !run.is_new);
        let (mut run, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let is_new = std::mem::take(&mut run.is_new);
        run.armed.clone().filter(|_| is_new)
    }

    /// All resources of the run are open.
    pub fn ready(&self) {
        let mut run = self.run();
        if run.state == State::Arming {
            run.state = State::Armed;
        }
    }

    /// Waits up to this time for the start of the run that is armed, and returns whether it has been
    /// started. Returns early, with false, when it is stopped.
    pub fn is_started(&self, wait: Duration) -> bool {
        let is_open = |run: &mut Run| matches!(run.state, State::Arming | State::Armed);
        let waited = self.changed.wait_timeout_while(self.run(), wait, is_open);
        let (run, _) = waited.unwrap_or_else(PoisonError::into_inner);
        matches!(run.state, State::Running | State::Paused)
    }

    /// Waits for the start of the run that is armed, and returns whether it has been started. Returns
    /// false when it is stopped.
    pub fn wait_for_start(&self, run: &ArmedRun) -> bool {
        while !run.stop.is_set() {
            if self.is_started(ROUND) {
                return true;
            }
        }
        false
    }

    /// The run is over, and its counts are final: tells the clients. A pause ends with it.
    pub fn ended(&self, how: Result<(), String>) {
        let counts = self.node.counts();
        let mut run = self.run();
        self.node.pause(false);
        *run = Run::default();
        // Under the lock: the next run cannot be armed before this event is on its way.
        self.publish(match how {
            Ok(()) => Event::Finished { counts },
            Err(text) => Event::Error { text },
        });
    }

    /// Sends an event to all clients.
    pub fn publish(&self, event: Event) {
        (self.publish)(Message::Event(event).line());
    }
}

impl<N> fmt::Debug for Session<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}
