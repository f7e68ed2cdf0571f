//! `pollux_frame`: a frame in the program's hands.

use std::ptr::null_mut;

/// A frame in a packet buffer. The program may write the bytes of the frame and, before it sends it,
/// shorten `len`; the other fields are read only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pollux_frame {
    /// The frame, from its Ethernet header on.
    pub data: *mut u8,
    /// The UDP payload, in the frame. NULL in a frame of pollux_alloc.
    pub payload: *mut u8,
    /// Bytes of the frame.
    pub len: u32,
    /// Bytes of the payload.
    pub payload_len: u16,
    /// UDP destination port.
    pub dst_port: u16,
    /// UDP source port.
    pub src_port: u16,
    /// Of the library.
    pub reserved: u16,
    /// Of the library.
    pub slot: u32,
    /// Of the library.
    pub ticket: u64,
    /// Time stamp of the capture, the kernel or the NIC in ns since 1970; 0 without one.
    pub wire_ns: u64,
    /// Time of arrival in the process, in ns since the port was opened.
    pub arrival_ns: u64,
}

impl pollux_frame {
    /// Shows that the program no longer has the frame.
    #[inline]
    pub(crate) fn leave(&mut self) {
        self.data = null_mut();
        self.payload = null_mut();
    }

    /// No frame.
    pub(crate) const NONE: Self = Self {
        data: null_mut(),
        payload: null_mut(),
        len: 0,
        payload_len: 0,
        dst_port: 0,
        src_port: 0,
        reserved: 0,
        slot: 0,
        ticket: 0,
        wire_ns: 0,
        arrival_ns: 0,
    };
}
