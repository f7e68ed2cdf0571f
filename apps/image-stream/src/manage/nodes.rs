//! The nodes of a run: requests with their replies, and what happens meanwhile.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use pollux_app::lines::Address;
use pollux_images::control::{Event, Message, Reply, Request, Role, Status};

use super::link::{Incoming, Link};

/// Messages between the threads of the nodes and the manager.
const QUEUE: usize = 256;

/// Most events that come before the reply to a request.
pub(super) const MAX_WAITING: usize = 4096;

/// What happened at a node.
#[derive(Debug)]
pub(super) enum Happened {
    /// An event.
    Event(Event),
    /// The connection is closed, for this reason.
    Closed(String),
}

/// A node, to which there is a connection.
pub(super) struct Node {
    pub(super) role: Role,
    pub(super) name: String,
    pub(super) address: Address,
    link: Link,
    /// Requests without a reply yet.
    owed: usize,
}

impl Node {
    /// The node, for a message.
    pub(super) fn title(&self) -> String {
        format!("{} `{}` at {}", self.role, self.name, self.address)
    }
}

/// All nodes, in the order in which they were added.
pub(super) struct Nodes {
    list: Vec<Node>,
    incoming: Receiver<(usize, Incoming)>,
    sender: SyncSender<(usize, Incoming)>,
    waiting: VecDeque<(usize, Happened)>,
    timeout: Duration,
}

impl Nodes {
    /// None yet; `timeout` is for the reply to a request.
    pub(super) fn new(timeout: Duration) -> Self {
        let (sender, incoming) = sync_channel(QUEUE);
        Self {
            list: Vec::new(),
            incoming,
            sender,
            waiting: VecDeque::new(),
            timeout,
        }
    }

    /// Connects to a node.
    pub(super) fn add(&mut self, role: Role, name: String, address: &Address) -> Result<()> {
        let link = Link::connect(self.list.len(), address, self.timeout, self.sender.clone());
        let link = link.with_context(|| {
            format!("{role} `{name}` at {address}: start it with --control {address}, it does not listen")
        })?;
        self.list.push(Node {
            role,
            name,
            address: address.clone(),
            link,
            owed: 0,
        });
        Ok(())
    }

    /// The nodes.
    pub(super) fn all(&self) -> &[Node] {
        &self.list
    }

    /// Sends a request to a node, and waits for its reply. Events are kept meanwhile.
    ///
    /// # Errors
    /// The node, and what it says or what has failed.
    pub(super) fn ask(&mut self, n: usize, request: &Request) -> Result<Reply> {
        self.exchange(n, request)
            .with_context(|| self.list[n].title())
    }

    fn exchange(&mut self, n: usize, request: &Request) -> Result<Reply> {
        let limit = self.timeout;
        let sent = self.list[n].link.send(request);
        sent.context("a request cannot be sent: the node has ended, or does not read")?;
        // A reply that came late, to an earlier request, is before this one.
        self.list[n].owed += 1;
        let begun = Instant::now();
        loop {
            let left = limit.saturating_sub(begun.elapsed());
            let Some((from, incoming)) = self.receive(left) else {
                bail!(
                    "no reply within {} s: the node hangs; restart it",
                    limit.as_secs_f64()
                );
            };
            let happened = match incoming {
                Incoming::Message(Message::Reply(reply)) => {
                    self.list[from].owed = self.list[from].owed.saturating_sub(1);
                    if from == n && self.list[n].owed == 0 {
                        return match reply {
                            Reply::Error { text } => bail!("it says: {text}"),
                            reply => Ok(reply),
                        };
                    }
                    continue;
                }
                Incoming::Message(Message::Event(event)) => Happened::Event(event),
                Incoming::Closed(why) if from == n => {
                    self.waiting.push_back((n, Happened::Closed(why.clone())));
                    bail!("{why}");
                }
                Incoming::Closed(why) => Happened::Closed(why),
            };
            ensure!(
                self.waiting.len() < MAX_WAITING,
                "{MAX_WAITING} events came before the reply: the node is out of order; restart it"
            );
            self.waiting.push_back((from, happened));
        }
    }

    /// The state and the counts of a node.
    ///
    /// # Errors
    /// As [`ask`](Self::ask); a reply of another kind.
    pub(super) fn status(&mut self, n: usize) -> Result<Status> {
        match self.ask(n, &Request::Status)? {
            Reply::Status(status) => Ok(status),
            _ => bail!(
                "{}: its reply to `status` is another one",
                self.list[n].title()
            ),
        }
    }

    /// What happens next at any node, within this time.
    pub(super) fn next(&mut self, wait: Duration) -> Option<(usize, Happened)> {
        if let Some(next) = self.waiting.pop_front() {
            return Some(next);
        }
        let (n, incoming) = self.receive(wait)?;
        match incoming {
            Incoming::Message(Message::Event(event)) => Some((n, Happened::Event(event))),
            Incoming::Closed(why) => Some((n, Happened::Closed(why))),
            // It came too late: the manager no longer waits for it.
            Incoming::Message(Message::Reply(_)) => {
                self.list[n].owed = self.list[n].owed.saturating_sub(1);
                None
            }
        }
    }

    fn receive(&self, wait: Duration) -> Option<(usize, Incoming)> {
        // There is a sender here: an error is the end of the time.
        self.incoming.recv_timeout(wait).ok()
    }
}
