//! Sockets of the kernel: a stream over TCP, and datagrams to and fro over UDP.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use pollux_pmd::lcore;
use pollux_pmd::{Clock as _, LatencyHistogram, LatencyView, TscClock};

/// Warm-up, which is not counted.
const WARM_UP: Duration = Duration::from_millis(100);
/// How long a server is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause before a server is asked again.
const PAUSE: Duration = Duration::from_millis(10);
/// Longest datagram of the one that answers.
const DATAGRAM: usize = 2048;

/// Gb/s that one sender sends; the data are read into a buffer of `bytes`.
pub(super) fn receive(core: usize, at: SocketAddr, bytes: usize, time: Duration) -> Result<f64> {
    lcore::pin("receive", core)?;
    let (mut stream, _) = TcpListener::bind(at)?.accept()?;
    let mut buffer = vec![0; bytes];
    let (mut begin, mut count, mut is_warm) = (Instant::now(), 0_u64, false);
    loop {
        let read = stream.read(&mut buffer)?;
        ensure!(read > 0, "the sender is gone");
        count += read as u64;
        let elapsed = begin.elapsed();
        if !is_warm && elapsed >= WARM_UP {
            (is_warm, begin, count) = (true, Instant::now(), 0);
        } else if is_warm && elapsed >= time {
            return Ok((count * 8) as f64 / 1e9 / elapsed.as_secs_f64());
        }
    }
}

/// Sends a buffer of `bytes` again and again; how often.
pub(super) fn send(core: usize, at: SocketAddr, bytes: usize) -> Result<u64> {
    lcore::pin("send", core)?;
    let mut stream = connect(at)?;
    let buffer = vec![0x5a; bytes];
    let mut count = 0;
    // The receiver closes the connection when it has enough.
    while stream.write_all(&buffer).is_ok() {
        count += 1;
    }
    Ok(count)
}

fn connect(at: SocketAddr) -> Result<TcpStream> {
    let begin = Instant::now();
    loop {
        match TcpStream::connect(at) {
            Ok(stream) => return Ok(stream),
            Err(_) if begin.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            Err(error) => bail!("{at}: {error}"),
        }
    }
}

/// Answers each datagram with the same, spinning, until none has come for a while; how many.
pub(super) fn answer(core: usize, at: SocketAddr) -> Result<u64> {
    lcore::pin("answer", core)?;
    let socket = UdpSocket::bind(at)?;
    let mut buffer = [0; DATAGRAM];
    // Connected, as the other end: the route is looked up once.
    let (len, peer) = socket.recv_from(&mut buffer)?;
    socket.connect(peer)?;
    socket.set_nonblocking(true)?;
    socket.send(&buffer[..len])?;
    let (mut count, mut seen) = (1, Instant::now());
    loop {
        match socket.recv(&mut buffer) {
            Ok(len) => {
                socket.send(&buffer[..len])?;
                count += 1;
                if count % 1024 == 0 {
                    seen = Instant::now();
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if seen.elapsed() > PATIENCE {
                    return Ok(count);
                }
            }
            // The one that asks has ended.
            Err(_) => return Ok(count),
        }
    }
}

/// Round trips of datagrams, spinning.
pub(super) fn ask(
    core: usize,
    at: SocketAddr,
    bytes: usize,
    time: Duration,
) -> Result<LatencyView> {
    lcore::pin("ask", core)?;
    ensure!((1..=DATAGRAM).contains(&bytes), "--bytes: 1 to {DATAGRAM}");
    let any: SocketAddr = ([0, 0, 0, 0], 0).into();
    let socket = UdpSocket::bind(any)?;
    socket.connect(at)?;
    socket.set_nonblocking(true)?;
    let (data, mut buffer) = (vec![0x5a; bytes], [0; DATAGRAM]);
    let clock = TscClock::get();
    let mut trips = LatencyHistogram::new();
    let begin = Instant::now();
    // Until the other end is there, and then for the warm-up.
    let mut last = None;
    loop {
        let (sent, sent_at) = (clock.now(), Instant::now());
        let is_sent = socket.send(&data).is_ok();
        let patience = if last.is_some() { PATIENCE } else { PAUSE };
        let mut is_back = false;
        while is_sent && !is_back {
            match socket.recv(&mut buffer) {
                Ok(len) => is_back = len == bytes,
                Err(_) if sent_at.elapsed() > patience => break,
                Err(_) => {}
            }
        }
        if !is_back {
            ensure!(
                last.is_none() && begin.elapsed() < PATIENCE,
                "no answer of {at}"
            );
            std::thread::sleep(PAUSE);
            continue;
        }
        let first = *last.get_or_insert(sent_at);
        let elapsed = first.elapsed();
        if elapsed >= WARM_UP + time {
            return Ok(trips.view());
        }
        if elapsed >= WARM_UP {
            trips.record(clock.to_ns(clock.now().since(sent)).0);
        }
    }
}
