//! One client: its lines and their answers, and the events between them.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::sync::Mutex;
use tokio::sync::broadcast::Receiver;
use tokio::time::timeout;

use super::service::Service;

/// Maximum time that a client may take to read a line.
const PATIENCE: Duration = Duration::from_secs(5);

/// Converses with a client until it disconnects or is disconnected.
pub(super) async fn converse(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
    service: &Service,
    events: Receiver<Arc<str>>,
) {
    let output = Mutex::new(output);
    tokio::select! {
        () = answer(input, &output, service) => {}
        () = forward(events, &output) => {}
    }
}

/// Writes a line, and returns whether the client has taken it in time.
async fn write(output: &Mutex<impl AsyncWrite + Unpin>, line: &str) -> bool {
    let written = async { output.lock().await.write_all(line.as_bytes()).await };
    matches!(timeout(PATIENCE, written).await, Ok(Ok(())))
}

/// Answers line by line, until the client has no more, or a line cannot be answered.
async fn answer(
    input: impl AsyncRead + Unpin,
    output: &Mutex<impl AsyncWrite + Unpin>,
    service: &Service,
) {
    let limit = service.longest_line;
    let mut lines = BufReader::new(input);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut next = (&mut lines).take(limit as u64 + 1);
        match next.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let is_long = line.len() > limit;
        let answer = if is_long {
            (service.answer)(Err(&format!("a line is longer than {limit} bytes")))
        } else {
            (service.answer)(Ok(&line))
        };
        // The beginning of the next line is unknown after one that is too long.
        if !write(output, &answer).await || is_long {
            return;
        }
    }
}

/// Writes events until the client does not read them, or is too far behind.
async fn forward(mut events: Receiver<Arc<str>>, output: &Mutex<impl AsyncWrite + Unpin>) {
    while let Ok(line) = events.recv().await {
        if !write(output, &line).await {
            return;
        }
    }
}
