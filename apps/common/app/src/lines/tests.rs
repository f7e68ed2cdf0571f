#![allow(clippy::unwrap_used)]
//! Clients of both kinds, good and bad.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::*;

const LONGEST: usize = 32;

trait Client: Read + Write {
    fn end(&self);
}

impl Client for UnixStream {
    fn end(&self) {
        self.shutdown(std::net::Shutdown::Write).unwrap();
    }
}

impl Client for TcpStream {
    fn end(&self) {
        self.shutdown(std::net::Shutdown::Write).unwrap();
    }
}

fn connect(address: &Address) -> BufReader<Box<dyn Client>> {
    let limit = Some(Duration::from_mins(1));
    BufReader::new(match address {
        Address::Unix(path) => {
            let stream = UnixStream::connect(path).unwrap();
            stream.set_read_timeout(limit).unwrap();
            Box::new(stream)
        }
        Address::Tcp(address) => {
            let stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(limit).unwrap();
            Box::new(stream)
        }
    })
}

fn line(client: &mut BufReader<Box<dyn Client>>) -> String {
    let mut line = String::new();
    client.read_line(&mut line).unwrap();
    line
}

fn ask(client: &mut BufReader<Box<dyn Client>>, text: &str) -> String {
    client.get_mut().write_all(text.as_bytes()).unwrap();
    line(client)
}

/// Numbers each line and sends it back.
fn echo(address: &Address, events: &Events) -> anyhow::Result<Server> {
    let count = AtomicU32::new(0);
    let answer = move |line: Result<&[u8], &str>| match line {
        Ok(line) => {
            let n = count.fetch_add(1, Ordering::Relaxed);
            format!("{n} {}\n", String::from_utf8_lossy(line).trim_end())
        }
        Err(why) => format!("refused: {why}\n"),
    };
    Server::start(
        "echo",
        address,
        Service::new(LONGEST, answer).with_events(events),
        &[],
    )
}

fn addresses(folder: &tempfile::TempDir) -> [Address; 2] {
    let tcp = "127.0.0.1:0".parse().unwrap();
    [Address::Unix(folder.path().join("socket")), tcp]
}

#[test]
fn lines_have_answers_in_order() {
    let folder = tempfile::tempdir().unwrap();
    for address in addresses(&folder) {
        let server = echo(&address, &Events::default()).unwrap();
        let mut client = connect(server.address());
        assert_eq!(ask(&mut client, "one\ntwo\nthr"), "0 one\n");
        assert_eq!(line(&mut client), "1 two\n");
        let longest = "x".repeat(LONGEST - 6);
        assert_eq!(
            ask(&mut client, &format!("ee{longest}\n")).len(),
            2 + LONGEST
        );
        // The last one has no end.
        client.get_mut().write_all(b"last").unwrap();
        client.get_ref().end();
        assert_eq!(line(&mut client), "3 last\n");
        assert_eq!(line(&mut client), "");
        // Bytes that are no text, in two clients at once.
        let (mut one, mut two) = (connect(server.address()), connect(server.address()));
        one.get_mut().write_all(&[0xff, 0, b'\n']).unwrap();
        assert_eq!(ask(&mut two, "b\n").len(), 4);
        assert!(!line(&mut one).is_empty());
    }
    assert!(!folder.path().join("socket").exists());
}

#[test]
fn long_lines_and_too_many_clients_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for address in addresses(&folder) {
        let server = echo(&address, &Events::default()).unwrap();
        let mut client = connect(server.address());
        // Without an end; the connection is closed after the answer.
        let answer = ask(&mut client, &"x".repeat(LONGEST + 1));
        assert_eq!(answer, "refused: a line is longer than 32 bytes\n");
        assert_eq!(line(&mut client), "");
        let mut all: Vec<_> = (0..CLIENTS).map(|_| connect(server.address())).collect();
        for client in &mut all {
            assert!(ask(client, "x\n").ends_with(" x\n"));
        }
        let mut late = connect(server.address());
        assert_eq!(line(&mut late), "refused: 16 clients are here already\n");
        all.pop();
        // There is a place again, soon.
        let is_served = || ask(&mut connect(server.address()), "y\n").ends_with(" y\n");
        while !is_served() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn events_reach_all_clients() {
    let folder = tempfile::tempdir().unwrap();
    for address in addresses(&folder) {
        let events = Events::default();
        events.send("before\n".into());
        let server = echo(&address, &events).unwrap();
        let mut clients = [connect(server.address()), connect(server.address())];
        for client in &mut clients {
            // It is served once it has an answer.
            assert!(ask(client, "x\n").ends_with(" x\n"));
        }
        for n in 0..40 {
            events.send(format!("event {n}\n"));
        }
        for client in &mut clients {
            let read: Vec<_> = (0..40).map(|_| line(client)).collect();
            let sent: Vec<_> = (0..40).map(|n| format!("event {n}\n")).collect();
            assert_eq!(read, sent);
            assert!(ask(client, "y\n").ends_with(" y\n"));
        }
    }
}

/// A client that reads nothing holds up neither events nor other clients, and is disconnected.
#[test]
fn a_client_that_does_not_read_is_disconnected() {
    let events = Events::default();
    let server = echo(&"127.0.0.1:0".parse().unwrap(), &events).unwrap();
    let mut deaf = connect(server.address());
    let mut client = connect(server.address());
    for client in [&mut deaf, &mut client] {
        assert!(ask(client, "x\n").ends_with(" x\n"));
    }
    let long: Arc<str> = format!("{}\n", "e".repeat(1 << 20)).into();
    for _ in 0..100 {
        events.send(long.to_string());
        assert_eq!(line(&mut client).len(), long.len());
        assert!(ask(&mut client, "y\n").ends_with(" y\n"));
    }
    let mut rest = Vec::new();
    let _ = deaf.read_to_end(&mut rest);
    assert!(rest.len() < 100 << 20, "{}", rest.len());
}

#[test]
fn a_socket_is_its_owners_and_not_taken_from_others() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let address = Address::Unix(path.clone());
    let events = Events::default();
    let refused = |said: &str| {
        let error = format!("{:#}", echo(&address, &events).unwrap_err());
        assert!(error.contains(said), "{error}");
    };
    let server = echo(&address, &events).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    refused("another program listens there");
    drop(server);
    std::fs::write(&path, "").unwrap();
    refused("is not a socket");
    std::fs::remove_file(&path).unwrap();
    // A stale one.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    drop(echo(&address, &events).unwrap());
    assert!(!path.exists());
    let tcp = echo(&"127.0.0.1:0".parse().unwrap(), &events).unwrap();
    let error = echo(tcp.address(), &events).unwrap_err();
    assert!(format!("{error:#}").contains("cannot listen there"));
}

/// A server that ends leaves nothing behind that was flushed.
#[test]
fn flushed_events_reach_clients_before_the_end() {
    let folder = tempfile::tempdir().unwrap();
    for address in addresses(&folder) {
        let events = Events::default();
        let server = echo(&address, &events).unwrap();
        let mut client = connect(server.address());
        // It is subscribed when it has an answer.
        assert_eq!(ask(&mut client, "here\n"), "0 here\n");
        events.send("the end\n".into());
        events.flush(Duration::from_mins(1));
        drop(server);
        assert_eq!(line(&mut client), "the end\n");
        assert_eq!(line(&mut client), "");
        // Without clients nothing is waited for.
        events.send("late\n".into());
        events.flush(Duration::from_mins(1));
    }
}
