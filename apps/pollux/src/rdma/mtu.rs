//! The option `--mtu`.

use pollux_rdma::Mtu;

/// Parses the bytes of data in a packet.
pub(super) fn mtu(text: &str) -> Result<Mtu, String> {
    let bytes = text.parse().ok();
    let mtu = bytes.and_then(Mtu::from_bytes);
    mtu.ok_or_else(|| "256, 512, 1024, 2048 or 4096 bytes".into())
}
