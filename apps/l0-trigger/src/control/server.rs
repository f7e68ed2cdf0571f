//! Control socket server: clients, their lines, and limits on both.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream as Stream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use pollux_app::Background;
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::state::Control;

/// Maximum number of concurrent clients; further ones get an error and are disconnected.
const CLIENTS: usize = 16;

/// Maximum length of a line, in bytes.
const LINE: usize = 4096;

/// Maximum time that a client may take to read an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Delay after the system could not provide a connection, for example without free descriptors.
const NAP: Duration = Duration::from_millis(100);

/// Number of clients in the kernel's backlog.
const BACKLOG: i32 = 16;

/// The server thread; dropping this ends it, and removes the socket.
pub struct Server {
    socket: SocketFile,
    thread: Option<Background>,
}

/// Path of the socket.
struct SocketFile {
    path: PathBuf,
    /// Device and inode: the file at the path may be another program's at the end.
    identity: (u64, u64),
}

impl Server {
    /// Listens at `path`, accessible to its owner alone, on none of the CPUs in `loops`.
    ///
    /// # Errors
    /// A path where another program listens, or that is not a socket.
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

/// Removes a stale socket, which a killed program has left.
fn make_room(path: &Path) -> Result<()> {
    let Ok(found) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    ensure!(
        found.file_type().is_socket(),
        "the path exists and is not a socket: give another path"
    );
    match Stream::connect(path) {
        Ok(_) => bail!("another program listens there: stop it, or give another path"),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            Ok(fs::remove_file(path)?)
        }
        Err(error) => Err(error).context("a socket of another user is there: give another path"),
    }
}

/// Creates a socket that only its owner can connect to, from its first moment on.
fn listen(path: &Path) -> io::Result<std::os::unix::net::UnixListener> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let rest = fs::set_permissions(path, fs::Permissions::from_mode(0o600))
        .and_then(|()| socket.listen(BACKLOG))
        .and_then(|()| socket.set_nonblocking(true));
    rest.inspect_err(|_| drop(fs::remove_file(path)))?;
    Ok(socket.into())
}

/// Serves until an error.
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
            let full = control.refused_or_done(Err(format!("{CLIENTS} clients are here already")));
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

/// Answers line by line, until the client disconnects or is disconnected.
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
            control.refused_or_done(Err(format!("a line is longer than {LINE} bytes")))
        } else {
            control.answer(&line)
        };
        let written = timeout(PATIENCE, out.write_all(answer.as_bytes())).await;
        // The beginning of the next line is unknown after one that is too long.
        if is_long || !matches!(written, Ok(Ok(()))) {
            return;
        }
    }
}
