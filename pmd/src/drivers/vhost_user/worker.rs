//! Control thread of a port: connects to peers and runs the protocol with one after the other,
//! while the queues are polled by other threads.

use std::io;

use super::back::Back;
use super::connection::Stop;
use super::control::Control;
use super::ended::Ended;
use super::endpoint::{Endpoint, RETRY};
use super::front::Front;
use super::link::State;

/// The port's end of the protocol.
pub(super) enum End {
    Front(Front),
    Back(Back),
}

/// Starts the thread of a port.
pub(super) fn start(
    port: String,
    end: End,
    endpoint: Endpoint,
    state: std::sync::Arc<State>,
) -> io::Result<Control> {
    let stop = Stop::new()?;
    state.lent.set_port(&port);
    let worker = Worker {
        port,
        end,
        endpoint,
        state,
        stop: stop.clone(),
    };
    let thread = std::thread::Builder::new()
        .name("vhost-user".into())
        .spawn(move || worker.run())?;
    Ok(Control::new(stop, thread))
}

struct Worker {
    port: String,
    end: End,
    endpoint: Endpoint,
    state: std::sync::Arc<State>,
    stop: Stop,
}

impl Worker {
    fn run(self) {
        let mut last = String::new();
        loop {
            let ended = match self
                .endpoint
                .connect(&self.stop, || self.state.lent.look(false))
            {
                Err(ended) => ended,
                Ok(connection) => match &self.end {
                    End::Front(front) => front.session(connection, &self.state),
                    End::Back(back) => back.session(&connection, &self.state),
                },
            };
            self.tell(&ended, &mut last);
            // After a pause, since a peer that fails each time would otherwise keep a core busy.
            if matches!(ended, Ended::Stopped) || self.stop.wait(None, Some(RETRY)).is_err() {
                return;
            }
        }
    }

    /// Logs why a session ended; repeats a reason only after a different one.
    fn tell(&self, ended: &Ended, last: &mut String) {
        let text = ended.to_string();
        let port = &self.port;
        match ended {
            Ended::Stopped => {}
            Ended::Closed => tracing::info!("{port}: {text}; waiting for the next"),
            _ if text == *last => {}
            Ended::Refused(_) => tracing::warn!("{port}: {text}"),
            _ => tracing::warn!("{port}: {text}; waiting for another peer"),
        }
        if matches!(ended, Ended::Violation(_)) {
            self.state.count_violation();
        }
        *last = text;
    }
}
