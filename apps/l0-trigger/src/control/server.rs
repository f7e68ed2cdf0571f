//! The socket: clients, their lines, and bounds on both.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream as Stream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use pollux_program::Background;
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::Control;

/// Clients at a time; another is told so, and sent away.
const CLIENTS: usize = 16;

/// Longest line, in bytes.
const LINE: usize = 4096;

/// How long a client may take to read an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long it waits when the system has no connection to give: no descriptors, say.
const NAP: Duration = Duration::from_millis(100);

/// Clients that wait in the kernel's queue.
const BACKLOG: i32 = 16;

/// A thread that answers; dropping it ends it, and takes the socket away.
pub struct Server {
    socket: SocketFile,
    thread: Option<Background>,
}

/// The socket's place among the files.
struct SocketFile {
    path: PathBuf,
    /// Device and inode: what is there at the end may be another's.
    identity: (u64, u64),
}

impl Server {
    /// Listens at `path`, for its owner alone, on none of the CPUs in `loops`.
    ///
    /// # Errors
    /// A path where another program listens, or where something else than a socket is.
    pub fn start(path: &Path, control: Arc<Control>, loops: &[usize]) -> Result<Self> {
        let name = || format!("--control {}", path.display());
        make_room(path).with_context(name)?;
        let socket = listen(path).with_context(name)?;
        let found = fs::symlink_metadata(path).with_context(name)?;
        let socket_file = SocketFile {
            path: path.into(),
            identity: (found.dev(), found.ino()),
        };
        let work = move || async move {
            let Err(error) = serve(socket, control).await;
            tracing::error!("runs are no longer controlled: {error:?}");
        };
        let thread = Background::start("control", loops, work).with_context(name)?;
        Ok(Self {
            socket: socket_file,
            thread: Some(thread),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.thread.take());
        let SocketFile { path, identity } = &self.socket;
        let is_ours =
            fs::symlink_metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == *identity);
        if is_ours {
            let _ = fs::remove_file(path);
        }
    }
}

/// Takes away a socket that nobody listens at: a program that was killed has left it.
fn make_room(path: &Path) -> Result<()> {
    let Ok(found) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    ensure!(
        found.file_type().is_socket(),
        "there is something else than a socket: give another path"
    );
    match Stream::connect(path) {
        Ok(_) => bail!("another program listens there: stop it, or give another path"),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            Ok(fs::remove_file(path)?)
        }
        Err(error) => Err(error).context("there is a socket of somebody else"),
    }
}

/// A socket that nobody but its owner can connect to, from its first moment on.
fn listen(path: &Path) -> io::Result<std::os::unix::net::UnixListener> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let rest = fs::set_permissions(path, fs::Permissions::from_mode(0o600))
        .and_then(|()| socket.listen(BACKLOG))
        .and_then(|()| socket.set_nonblocking(true));
    rest.inspect_err(|_| drop(fs::remove_file(path)))?;
    Ok(socket.into())
}

/// Serves for ever, or until it cannot.
async fn serve(
    socket: std::os::unix::net::UnixListener,
    control: Arc<Control>,
) -> Result<std::convert::Infallible> {
    let listener = UnixListener::from_std(socket)?;
    let places = Arc::new(Semaphore::new(CLIENTS));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(NAP).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            let full = control.told(Err(format!("{CLIENTS} clients are here already")));
            // It fits into the empty buffer of a new connection.
            let _ = stream.try_write(full.as_bytes());
            continue;
        };
        let control = Arc::clone(&control);
        tokio::spawn(async move {
            converse(stream, &control).await;
            drop(place);
        });
    }
}

/// Answers line by line, until the client goes or is sent away.
async fn converse(stream: UnixStream, control: &Control) {
    let (lines, mut out) = stream.into_split();
    let mut lines = BufReader::new(lines);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut next = (&mut lines).take(LINE as u64 + 1);
        match next.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let is_long = line.len() > LINE;
        let answer = if is_long {
            control.told(Err(format!("a line is longer than {LINE} bytes")))
        } else {
            control.answer(&line)
        };
        let written = timeout(PATIENCE, out.write_all(answer.as_bytes())).await;
        // Where the next line begins is not known behind one that is too long.
        if is_long || !matches!(written, Ok(Ok(()))) {
            return;
        }
    }
}
