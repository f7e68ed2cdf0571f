//! A Unix socket in the file system, which only its owner can connect to.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use socket2::{Domain, SockAddr, Socket, Type};

/// Path of a socket. Dropping this removes it.
pub(super) struct SocketFile {
    path: PathBuf,
    /// Device and inode: the file at the path may be another program's at the end.
    identity: (u64, u64),
}

impl SocketFile {
    /// Listens at the path, in place of a stale socket.
    ///
    /// # Errors
    /// A path where another program listens, or that is not a socket.
    pub(super) fn listen(path: &Path, backlog: i32) -> Result<(Self, UnixListener)> {
        make_room(path)?;
        let listener = bind(path, backlog)?;
        let found = fs::symlink_metadata(path)?;
        let file = Self {
            path: path.into(),
            identity: (found.dev(), found.ino()),
        };
        Ok((file, listener))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let Self { path, identity } = self;
        let is_ours =
            fs::symlink_metadata(&*path).is_ok_and(|found| (found.dev(), found.ino()) == *identity);
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
    match UnixStream::connect(path) {
        Ok(_) => bail!("another program listens there: stop it, or give another path"),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            Ok(fs::remove_file(path)?)
        }
        Err(error) => Err(error).context("the socket there belongs to another user"),
    }
}

/// Creates a socket that only its owner can connect to, from its first moment on.
fn bind(path: &Path, backlog: i32) -> io::Result<UnixListener> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let rest = fs::set_permissions(path, fs::Permissions::from_mode(0o600))
        .and_then(|()| socket.listen(backlog))
        .and_then(|()| socket.set_nonblocking(true));
    rest.inspect_err(|_| drop(fs::remove_file(path)))?;
    Ok(socket.into())
}
