//! The functions of `include/pollux.h`. None lets a panic out, and none trusts more than that pointers
//! which are not NULL are what the header says.

#![expect(
    clippy::missing_safety_doc,
    reason = "the texts are the header's: a pointer that is not NULL is what they say, to memory that can be \
              read and written for as many elements as they say"
)]

use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use pollux_embed::{EmbeddedPort, Frames};
use pollux_mempool::Mbuf;
use serde::Serialize;

use crate::frame::pollux_frame;
use crate::open::{Open, pollux_port};
use crate::options::{self, pollux_options};
use crate::refused::{NOWHERE, Reason, Refused};
use crate::text;

/// Bytes of an Ethernet header: the shortest frame.
const ETHERNET_HEADER: u32 = 14;

/// Runs a call on a port; one that is refused is counted, and has the result `refused`.
///
/// # Safety
/// `port` is NULL or of [`pollux_open`].
#[inline]
unsafe fn call<T>(
    port: *mut pollux_port,
    refused: T,
    run: impl FnOnce(&'static pollux_port) -> Result<T, Reason>,
) -> T {
    // SAFETY: a port of `pollux_open` is never freed, and only shared references to it are made.
    let Some(port) = (unsafe { port.as_ref() }) else {
        NOWHERE.count(Reason::Null);
        return refused;
    };
    let result = catch_unwind(AssertUnwindSafe(|| run(port)));
    match result.unwrap_or(Err(Reason::Internal)) {
        Ok(result) => result,
        Err(reason) => {
            port.refuse(reason);
            refused
        }
    }
}

/// The frames of a caller.
///
/// # Safety
/// `frames` is NULL, or `n` frames there can be read and written while the result is in use.
#[inline]
unsafe fn slice<'a>(frames: *mut pollux_frame, n: usize) -> Result<&'a mut [pollux_frame], Reason> {
    if n == 0 {
        return Ok(&mut []);
    }
    if frames.is_null() {
        return Err(Reason::Null);
    }
    // SAFETY: by the caller's promise. Any bytes are a frame.
    Ok(unsafe { std::slice::from_raw_parts_mut(frames, n) })
}

/// Opens a port by its spec ("af_packet:eth1"). `or_null`: options, or NULL for the defaults. On failure
/// returns NULL, and writes a message that says what to do into `error`, which has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pollux_open(
    spec: *const c_char,
    or_null: *const pollux_options,
    error: *mut c_char,
    room: usize,
) -> *mut pollux_port {
    let opened = catch_unwind(|| {
        // SAFETY: by the caller's promise.
        let spec = unsafe { text::read(spec) }.ok_or("spec is NULL or not UTF-8")?;
        // SAFETY: by the caller's promise.
        let options = unsafe { options::read(or_null) }?;
        let port = EmbeddedPort::open(spec, &options).map_err(|error| error.to_string())?;
        Ok(pollux_port::new(port))
    });
    let said: String = match opened {
        Ok(Ok(port)) => return std::ptr::from_ref(port).cast_mut(),
        Ok(Err(said)) => said,
        Err(_) => "a fault of the library: see standard error".into(),
    };
    // SAFETY: by the caller's promise.
    unsafe { text::copy(&said, error, room) };
    null_mut()
}

/// Receives at most `n` datagrams into `frames`; returns how many. Never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pollux_rx(
    port: *mut pollux_port,
    frames: *mut pollux_frame,
    n: usize,
) -> usize {
    let run = |port: &pollux_port| {
        // SAFETY: by the caller's promise.
        let frames = unsafe { slice(frames, n) }?;
        let mut opened = port.claim()?;
        let Some(Open { port: open, slots }) = opened.as_mut().filter(|_| !port.is_closed()) else {
            return Err(Reason::Closed);
        };
        let clock = port.clock();
        let mut frames = frames.iter_mut();
        let received = open.rx(n, |datagram| {
            let Some(frame) = frames.next() else { return };
            let payload = datagram.payload();
            let data = datagram.frame();
            *frame = pollux_frame {
                data: data.as_ptr().cast_mut(),
                payload: payload.as_ptr().cast_mut(),
                len: data.len() as u32,
                payload_len: payload.len() as u16,
                dst_port: datagram.dst_port(),
                src_port: datagram.src_port(),
                wire_ns: datagram.wire_time().unwrap_or_default().0,
                arrival_ns: clock.ns(datagram.arrival()),
                ..pollux_frame::NONE
            };
            slots.hand_out(datagram.into_mbuf(), frame);
        });
        port.note(slots);
        Ok(received)
    };
    // SAFETY: by the caller's promise.
    unsafe { call(port, 0, run) }
}

/// Sends frames, received or of pollux_alloc, in order; returns how many: the first so many are gone,
/// the rest stay the program's, for want of room in the queue or because the next is refused. Never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pollux_tx(
    port: *mut pollux_port,
    frames: *mut pollux_frame,
    n: usize,
) -> usize {
    let run = |port: &pollux_port| {
        // SAFETY: by the caller's promise.
        let frames = unsafe { slice(frames, n) }?;
        let mut open = port.claim()?;
        let Some(open) = open.as_mut().filter(|_| !port.is_closed()) else {
            return Err(Reason::Closed);
        };
        let mut sent = 0;
        while sent < frames.len() {
            let (left, more) = send_burst(port, open, &mut frames[sent..]);
            sent += left;
            if !more {
                break;
            }
        }
        Ok(sent)
    };
    // SAFETY: by the caller's promise.
    unsafe { call(port, 0, run) }
}

/// Sends a burst of frames; returns how many left, and whether more may be sent.
fn send_burst(port: &pollux_port, open: &mut Open, frames: &mut [pollux_frame]) -> (usize, bool) {
    let mut burst = Frames::new();
    let mut is_whole = true;
    for frame in &mut *frames {
        if burst.is_full() {
            break;
        }
        match to_send(open, frame) {
            // It fits: the burst was not full.
            Ok(mbuf) => drop(burst.push(mbuf)),
            Err(reason) => {
                port.refuse(reason);
                is_whole = false;
                break;
            }
        }
    }
    let filled = burst.len();
    let left = open.port.tx(&mut burst);
    let (gone, rest) = frames.split_at_mut(left);
    gone.iter_mut().for_each(pollux_frame::leave);
    let mut rest = rest.iter();
    burst.take_all(|mbuf| {
        if let Some(frame) = rest.next() {
            open.slots.put_back(mbuf, frame);
        }
    });
    port.note(&open.slots);
    (left, is_whole && left == filled)
}

/// The buffer of a frame, shortened to the frame's length.
fn to_send(open: &mut Open, frame: &pollux_frame) -> Result<Mbuf, Reason> {
    let mbuf = open.slots.get(frame)?;
    let len = frame.len as usize;
    if frame.len < ETHERNET_HEADER || len > mbuf.len() {
        return Err(Reason::Length);
    }
    mbuf.truncate(len);
    open.slots.take_back(frame)
}

/// Gives frames back. A frame that is refused is left out. After pollux_close for any thread, and for
/// several at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pollux_free(port: *mut pollux_port, frames: *mut pollux_frame, n: usize) {
    let run = |port: &pollux_port| {
        // SAFETY: by the caller's promise.
        let frames = unsafe { slice(frames, n) }?;
        let mut open = port.claim()?;
        let Some(Open {
            port: open_port,
            slots,
        }) = open.as_mut()
        else {
            return Err(Reason::FreedTwice);
        };
        for frames in frames.chunks_mut(Frames::new().free()) {
            let mut burst = Frames::new();
            for frame in frames {
                match slots.take_back(frame) {
                    Ok(mbuf) => {
                        frame.leave();
                        // It fits: a chunk is as long as a burst.
                        drop(burst.push(mbuf));
                    }
                    Err(reason) => port.refuse(reason),
                }
            }
            open_port.free_all(&mut burst);
        }
        port.note(slots);
        port.release(&mut open);
        Ok(())
    };
    // SAFETY: by the caller's promise.
    unsafe { call(port, (), run) }
}

/// Takes a buffer for a frame of `len` bytes, whose content is undefined. False if there is none, or no
/// frame can be so long.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pollux_alloc(
    port: *mut pollux_port,
    frame: *mut pollux_frame,
    len: usize,
) -> bool {
    let run = |port: &pollux_port| {
        // SAFETY: by the caller's promise.
        let frames = unsafe { slice(frame, 1) }?;
        let mut opened = port.claim()?;
        let Some(Open { port: open, slots }) = opened.as_mut().filter(|_| !port.is_closed()) else {
            return Err(Reason::Closed);
        };
        let (Some(mut mbuf), [frame]) = (open.alloc(len), frames) else {
            return Ok(false);
        };
        *frame = pollux_frame {
            data: mbuf.data_mut().as_mut_ptr(),
            len: len as u32,
            ..pollux_frame::NONE
        };
        slots.hand_out(mbuf, frame);
        port.note(slots);
        Ok(true)
    };
    // SAFETY: by the caller's promise.
    unsafe { call(port, false, run) }
}

/// Whether no datagram can arrive any more: the recording has ended, the device is gone, the port is
/// closed or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pollux_ended(port: *mut pollux_port) -> bool {
    let run = |port: &pollux_port| {
        let open = port.claim()?;
        let open = open.as_ref().filter(|_| !port.is_closed());
        Ok(open.is_none_or(|open| open.port.has_ended()))
    };
    // SAFETY: by the caller's promise.
    unsafe { call(port, true, run) }
}

/// Nanoseconds since the port was opened, on the clock of `arrival_ns`. For any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pollux_now(port: *mut pollux_port) -> u64 {
    let run = |port: &pollux_port| Ok(port.clock().now());
    // SAFETY: by the caller's promise.
    unsafe { call(port, 0, run) }
}

/// Calls without a port, as JSON.
#[derive(Serialize)]
struct Nowhere {
    refused: &'static Refused,
}

/// Writes the ledger as JSON with a NUL: {"from_wire", "delivered", "dropped": {CAUSE: n}, "balanced",
/// "sent": {"packets", "bytes", "errors"}, "held", "refused": {REASON: n}}; returns the bytes that it has
/// without the NUL, of which as many are written as fit into `room`. For any thread, and after pollux_close;
/// NULL: {"refused"} of the calls without a port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pollux_ledger(
    port: *mut pollux_port,
    json: *mut c_char,
    room: usize,
) -> usize {
    // SAFETY: a port of `pollux_open` is never freed, and only shared references to it are made.
    let port = unsafe { port.as_ref() };
    let written = catch_unwind(AssertUnwindSafe(|| match port {
        Some(port) => port.json(),
        None => serde_json::to_string(&Nowhere { refused: &NOWHERE }).unwrap_or_default(),
    }));
    // SAFETY: by the caller's promise.
    unsafe { text::copy(&written.unwrap_or_default(), json, room) }
}

/// Stops and releases the port. Frames that the program has stay valid, and are still to be freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pollux_close(port: *mut pollux_port) {
    // SAFETY: by the caller's promise.
    unsafe { call(port, (), pollux_port::close) }
}
