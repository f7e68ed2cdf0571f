//! `pollux_options`.

use pollux_embed::Options;

/// Options of a port. `size` is sizeof(pollux_options); a field that is 0 has its default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pollux_options {
    /// sizeof(pollux_options), by which a later library knows a program that was built before.
    pub size: usize,
    /// UDP destination ports that are delivered; NULL: all. Datagrams to others are dropped as
    /// demux-miss.
    pub streams: *const u16,
    /// Number of those ports.
    pub stream_count: usize,
    /// Bytes of a buffer; a longer frame or datagram is dropped as oversize. Default: the longest frame
    /// of the link, and any datagram of a recording.
    pub data_room: usize,
    /// Buffers of the pool. Default: 64 MiB of them, 1024 to 8192.
    pub buffers: usize,
    /// Not 0: IPv4 fragments are dropped as ip-fragment instead of joined to datagrams.
    pub drop_fragments: u32,
}

/// The options of a caller.
///
/// # Safety
/// `options` is NULL, or it can be read, `size` first and all of it if `size` is its own; `stream_count` ports can be read at
/// `streams`.
pub(crate) unsafe fn read(options: *const pollux_options) -> Result<Options, String> {
    if options.is_null() {
        return Ok(Options::default());
    }
    // SAFETY: the first field can be read, by the caller's promise.
    let size = unsafe { (&raw const (*options).size).read() };
    if size != size_of::<pollux_options>() {
        return Err(format!(
            "options: size = {size}: it must be sizeof(pollux_options), {} in this library",
            size_of::<pollux_options>()
        ));
    }
    // SAFETY: all fields can be read, by the caller's promise.
    let given = unsafe { options.read() };
    // SAFETY: by the caller's promise; read while the call lasts.
    let streams = (!given.streams.is_null())
        .then(|| unsafe { std::slice::from_raw_parts(given.streams, given.stream_count) });
    let given_size = |value| (value != 0).then_some(value);
    Ok(Options {
        streams: streams.map(<[u16]>::to_vec),
        data_room: given_size(given.data_room),
        buffers: given_size(given.buffers),
        // Programs free frames, or know that they keep them.
        burst: 0,
        reassemble: given.drop_fragments == 0,
    })
}
