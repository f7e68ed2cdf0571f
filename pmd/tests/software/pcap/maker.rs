//! Capture files built byte by byte, without the code under test.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

/// Writes integers in one byte order.
pub(crate) struct Maker {
    pub(crate) big: bool,
    pub(crate) out: Vec<u8>,
}

impl Maker {
    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.out.extend(if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        });
        self
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.out.extend(if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        });
        self
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.out.extend(bytes);
        self
    }

    /// A classic file header.
    pub(crate) fn pcap(big: bool, magic: u32, linktype: u32) -> Self {
        let mut maker = Self {
            big,
            out: Vec::new(),
        };
        maker
            .u32(magic)
            .u16(2)
            .u16(4)
            .u32(0)
            .u32(0)
            .u32(65_535)
            .u32(linktype);
        maker
    }

    pub(crate) fn record(
        &mut self,
        s: u32,
        fraction: u32,
        original: u32,
        data: &[u8],
    ) -> &mut Self {
        self.u32(s)
            .u32(fraction)
            .u32(data.len() as u32)
            .u32(original)
            .bytes(data)
    }

    /// A pcapng block; the body is padded.
    pub(crate) fn block(&mut self, kind: u32, body: impl FnOnce(&mut Self)) -> &mut Self {
        let start = self.out.len();
        self.u32(kind).u32(0);
        body(self);
        self.out.resize(self.out.len().next_multiple_of(4), 0);
        let len = (self.out.len() - start + 4) as u32;
        let bytes = if self.big {
            len.to_be_bytes()
        } else {
            len.to_le_bytes()
        };
        self.out[start + 4..start + 8].copy_from_slice(&bytes);
        self.u32(len)
    }

    pub(crate) fn section(&mut self) -> &mut Self {
        self.block(0x0a0d_0d0a, |body| {
            body.u32(0x1a2b_3c4d).u16(1).u16(0).bytes(&[0xff; 8]);
        })
    }

    pub(crate) fn interface(&mut self, linktype: u16, tsresol: Option<u8>) -> &mut Self {
        self.block(1, |body| {
            body.u16(linktype).u16(0).u32(0);
            body.u16(2).u16(3).bytes(b"eth\0"); // if_name, an option to skip
            if let Some(tsresol) = tsresol {
                body.u16(9).u16(1).bytes(&[tsresol, 0, 0, 0]);
            }
            body.u32(0);
        })
    }

    pub(crate) fn packet(&mut self, interface: u32, ticks: u64, data: &[u8]) -> &mut Self {
        self.block(6, |body| {
            body.u32(interface)
                .u32((ticks >> 32) as u32)
                .u32(ticks as u32);
            body.u32(data.len() as u32)
                .u32(data.len() as u32)
                .bytes(data);
        })
    }

    pub(crate) fn save(&self, dir: &TempDir) -> PathBuf {
        let path = dir.path().join("in.pcap");
        fs::write(&path, &self.out).unwrap();
        path
    }
}
