//! Runs that a manager starts, pauses and stops (`--control`, docs/formats/images-control.md): the detector
//! is a source node of an image stream.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::images::config::{ImagesConfig, MAX_RATE};
use crate::images::source::Control;
use anyhow::Context as _;
use pollux_app::Failure;
use pollux_app::lines::{Address, Events, Server, Service};
use pollux_images::control::{Arm, Capabilities, Counts, MAX_LINE, Node, Role, Session, SourceRun};
use pollux_pmd::lcore::StopFlag;

/// Called when all resources of a run are open; whether it is started.
pub(super) type Begin<'a> = dyn Fn(&Arc<Control>) -> bool + Sync + 'a;

/// For so long the end of the program waits for clients to be told about it.
const PATIENCE: Duration = Duration::from_millis(500);

/// Name and version of the program.
const PROGRAM: &str = concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION"));

/// What the link shows of the detector.
struct Detector {
    config: ImagesConfig,
    capabilities: Capabilities,
    /// State of the run, or of the last one.
    control: Mutex<Arc<Control>>,
}

impl Detector {
    fn control(&self) -> Arc<Control> {
        let control = self.control.lock();
        Arc::clone(&control.unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, control: &Arc<Control>) {
        let mut known = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Arc::clone(control);
    }

    /// What is sent in a run.
    fn armed(&self, run: &SourceRun) -> Result<ImagesConfig, String> {
        let mut config = self.config.clone();
        config.frames = run.frames.unwrap_or(config.frames);
        config.rate = run.rate_hz.unwrap_or(config.rate);
        config.validate().map_err(|error| error.to_string())?;
        Ok(config)
    }
}

impl Node for Detector {
    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    fn check(&self, arm: &Arm) -> Result<(), String> {
        match arm {
            Arm::Source(run) => self.armed(run).map(drop),
            Arm::Transfers(_) => Err("this is a source: arm it with `source`".into()),
        }
    }

    fn pause(&self, paused: bool) {
        self.control().pause(paused);
    }

    fn counts(&self) -> Counts {
        Counts {
            frames: self.control().frames.get(),
            transfers: Vec::new(),
        }
    }
}

/// Executes the runs that managers arm at `address` until `quit` is set; `run` does it with a configuration.
/// A run that fails ends alone: its reason goes to the clients and to the log.
///
/// # Errors
/// An address where it cannot listen.
pub(super) fn keep(
    address: &Address,
    config: ImagesConfig,
    quit: &StopFlag,
    cpus: &[usize],
    run: impl Fn(ImagesConfig, StopFlag, &Begin<'_>) -> Result<(), Failure> + Sync,
) -> Result<(), Failure> {
    let shape = config.layout().map_err(Failure::usage)?.image();
    let detector = Detector {
        config,
        capabilities: Capabilities {
            max_rate_hz: Some(MAX_RATE),
            ..Capabilities::new(Role::Source, PROGRAM, shape)
        },
        control: Mutex::default(),
    };
    let events = Events::default();
    let publish = events.clone();
    let session = Arc::new(Session::new(detector, move |line| publish.send(line)));
    let clients = Arc::clone(&session);
    let service = Service::new(MAX_LINE, move |line| clients.answer(line)).with_events(&events);
    let server = Server::start("control", address, service, cpus)
        .with_context(|| format!("--control {address}"))?;
    tracing::info!("runs are controlled at {}", server.address());
    session.serve(quit, |armed| {
        tracing::info!("a run is armed");
        // The counts are those of this run from here on.
        let detector = session.node();
        detector.set(&Arc::default());
        let begin = |control: &Arc<Control>| {
            detector.set(control);
            session.ready();
            session.wait_for_start(armed)
        };
        let ended = match &armed.arm {
            Arm::Source(source) => {
                let config = detector.armed(source)?;
                run(config, armed.stop.clone(), &begin)
            }
            // The session has refused it.
            Arm::Transfers(_) => Ok(()),
        };
        let ended = ended.map_err(|failure| match failure {
            Failure::Usage(error) | Failure::Run(error) => format!("{error:#}"),
        });
        match &ended {
            Ok(()) => tracing::info!("the run has ended"),
            Err(error) => tracing::error!("the run has failed: {error}"),
        }
        ended
    });
    events.flush(PATIENCE);
    Ok(())
}
