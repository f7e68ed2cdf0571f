//! The control thread of a port: finds peers and speaks the protocol with them, one after the
//! other, while the queues are polled elsewhere.

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
        let mut told = String::new();
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
            self.tell(&ended, &mut told);
            // Not at once, or a peer that fails each time would keep a core busy.
            if matches!(ended, Ended::Stopped) || self.stop.wait(None, Some(RETRY)).is_err() {
                return;
            }
        }
    }

    /// Logs why a session ended; the same again only if it was something else meanwhile.
    fn tell(&self, ended: &Ended, told: &mut String) {
        let text = ended.to_string();
        let port = &self.port;
        match ended {
            Ended::Stopped => {}
            Ended::Closed => tracing::info!("{port}: {text}; waiting for the next"),
            _ if text == *told => {}
            Ended::Refused(_) => tracing::warn!("{port}: {text}"),
            _ => tracing::warn!("{port}: {text}; waiting for another peer"),
        }
        if matches!(ended, Ended::Violation(_)) {
            self.state.count_violation();
        }
        *told = text;
    }
}
