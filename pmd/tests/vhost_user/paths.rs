//! Paths that are invalid for a socket.

use pollux_mempool::{Mempool, PoolConfig};
use pollux_pmd::PortConfig;

use crate::support::{Place, registry, spec};

#[test]
fn an_invalid_path_is_reported() {
    let place = Place::new();
    let pool = Mempool::new(PoolConfig::default()).unwrap();
    let socket = place.socket();
    let file = socket.with_file_name("file");
    std::fs::write(&file, "not a socket").unwrap();
    // unix(7): an address has room for 108 bytes. This is one more.
    let long = socket.with_file_name("x".repeat(108 - socket.parent().unwrap().as_os_str().len()));
    let missing = place.socket().join("v.sock");
    for (path, role, why) in [
        (
            &missing,
            "role=driver,server=on",
            "No such file or directory",
        ),
        (
            &missing,
            "role=device,server=on",
            "No such file or directory",
        ),
        (&file.join("v.sock"), "server=on", "Not a directory"),
        (&file, "server=on", "Address already in use"),
        (&long, "server=on", "File name too long"),
        (&long, "role=device", "File name too long"),
    ] {
        let spec = spec(path, role);
        let port = registry().open(&spec).unwrap();
        let port = port.configure(PortConfig::new(pool.clone())).unwrap();
        let error = port.start().err().unwrap().to_string();
        let expected = format!("port {spec}: cannot use the path for a socket: {why}");
        assert!(error.starts_with(&expected), "{error}");
        assert!(error.contains("shorter than 108 bytes"), "{error}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"not a socket");
    assert_eq!(pool.available(), pool.buffers());
}
