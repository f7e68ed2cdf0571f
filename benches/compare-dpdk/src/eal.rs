//! DPDK in this process: start, pools, rings and ports.

use std::ffi::{CStr, CString, c_char};
use std::ptr;

use anyhow::{Context, Result, bail, ensure};
use pollux_dpdk_sys as dpdk;

/// Buffers in each pool; one less than a power of two, as DPDK's documentation advises.
pub(crate) const BUFFERS: u32 = 8191;
/// Buffers in a cache: DPDK's largest, and the size of ours too.
pub(crate) const CACHE: u32 = 512;

/// Port ids in the order of the `--vdev` options below.
pub(crate) const NULL0: u16 = 0;
pub(crate) const NULL1: u16 = 1;
pub(crate) const LOOP: u16 = 2;

/// Starts DPDK on `core`, to which it pins this thread. Once per process.
pub(crate) fn init(core: usize, hugepages: bool) -> Result<()> {
    let mut arguments: Vec<String> = ["compare-dpdk", "-l"].map(str::to_owned).to_vec();
    arguments.push(core.to_string());
    // `--in-memory` leaves no file behind, but cannot do without hugepages.
    let memory: &[&str] = if hugepages {
        &["--in-memory"]
    } else {
        &["--no-huge", "--no-shconf"]
    };
    let rest = [
        "--no-pci",
        "--no-telemetry",
        "-m",
        "256",
        "--log-level=*:error",
    ];
    let vdevs = ["--vdev=net_null0", "--vdev=net_null1", "--vdev=net_ring0"];
    arguments.extend(
        memory
            .iter()
            .chain(&rest)
            .chain(&vdevs)
            .map(|&text| text.to_owned()),
    );

    let arguments: Vec<CString> = arguments
        .into_iter()
        .map(CString::new)
        .collect::<Result<_, _>>()?;
    let mut pointers: Vec<*mut c_char> = arguments
        .iter()
        .map(|text| text.as_ptr().cast_mut())
        .collect();
    // SAFETY: as many pointers to C strings as counted; DPDK permutes them and changes no text.
    let used = unsafe { dpdk::rte_eal_init(pointers.len() as i32, pointers.as_mut_ptr()) };
    ensure!(used >= 0, "rte_eal_init: {}", error());
    Ok(())
}

/// What DPDK says about its last failure.
fn error() -> String {
    // SAFETY: both only read thread-local state; the text is static or thread-local.
    let text = unsafe { CStr::from_ptr(dpdk::rte_strerror(dpdk::dpdk_errno())) };
    text.to_string_lossy().into_owned()
}

/// A pool of raw objects; `cache` 0 for none.
pub(crate) fn object_pool(name: &CStr, cache: u32) -> Result<*mut dpdk::rte_mempool> {
    // SAFETY: no constructor callbacks; everything else is checked by DPDK.
    let pool = unsafe {
        dpdk::rte_mempool_create(
            name.as_ptr(),
            BUFFERS,
            64,
            cache,
            0,
            None,
            ptr::null_mut(),
            None,
            ptr::null_mut(),
            dpdk::SOCKET_ID_ANY,
            0,
        )
    };
    ensure!(!pool.is_null(), "rte_mempool_create: {}", error());
    Ok(pool)
}

/// The pool's cache for this thread.
pub(crate) fn default_cache(pool: *mut dpdk::rte_mempool) -> *mut dpdk::rte_mempool_cache {
    // SAFETY: the pool lives until the process ends; this is the thread that EAL was started on.
    unsafe { dpdk::rte_mempool_default_cache(pool, dpdk::rte_lcore_id()) }
}

/// A pool of packet buffers with the room that ours have: 128 B headroom, 2048 B data.
pub(crate) fn buffer_pool(name: &CStr) -> Result<*mut dpdk::rte_mempool> {
    let (room, any) = (128 + 2048, dpdk::SOCKET_ID_ANY);
    // SAFETY: the name is a C string; everything else is checked by DPDK.
    let pool =
        unsafe { dpdk::rte_pktmbuf_pool_create(name.as_ptr(), BUFFERS, CACHE, 0, room, any) };
    ensure!(!pool.is_null(), "rte_pktmbuf_pool_create: {}", error());
    Ok(pool)
}

/// Takes `frames.len()` buffers.
pub(crate) fn alloc(
    pool: *mut dpdk::rte_mempool,
    frames: &mut [*mut dpdk::rte_mbuf],
) -> Result<()> {
    // SAFETY: the pool is a live pool of packet buffers; DPDK writes as many pointers as counted.
    let failed =
        unsafe { dpdk::rte_pktmbuf_alloc_bulk(pool, frames.as_mut_ptr(), frames.len() as u32) };
    ensure!(
        failed == 0,
        "rte_pktmbuf_alloc_bulk: the pool has too few buffers"
    );
    Ok(())
}

/// Takes one buffer and fills it with `bytes`.
pub(crate) fn frame(pool: *mut dpdk::rte_mempool, bytes: &[u8]) -> Result<*mut dpdk::rte_mbuf> {
    let mut frame = [ptr::null_mut()];
    alloc(pool, &mut frame)?;
    let len = u16::try_from(bytes.len()).context("frame longer than a buffer")?;
    // SAFETY: a fresh buffer of ours alone; append checks the room.
    unsafe {
        let room = dpdk::rte_pktmbuf_append(frame[0], len);
        ensure!(!room.is_null(), "a frame of {len} B does not fit a buffer");
        ptr::copy_nonoverlapping(bytes.as_ptr(), room.cast(), bytes.len());
    }
    Ok(frame[0])
}

/// Returns buffers to their pools.
pub(crate) fn free(frames: &mut [*mut dpdk::rte_mbuf]) {
    // SAFETY: the caller's buffers, given up here.
    unsafe { dpdk::rte_pktmbuf_free_bulk(frames.as_mut_ptr(), frames.len() as u32) };
}

/// A ring for `size` - 1 pointers.
pub(crate) fn ring(name: &CStr, size: u32, flags: u32) -> Result<*mut dpdk::rte_ring> {
    // SAFETY: the name is a C string; everything else is checked by DPDK.
    let ring = unsafe { dpdk::rte_ring_create(name.as_ptr(), size, dpdk::SOCKET_ID_ANY, flags) };
    ensure!(!ring.is_null(), "rte_ring_create: {}", error());
    Ok(ring)
}

/// Sets a port up with one queue each way and starts it.
pub(crate) fn start_port(port: u16, pool: *mut dpdk::rte_mempool) -> Result<()> {
    const DESCRIPTORS: u16 = 1024;
    let config = dpdk::rte_eth_conf::default();
    let any = dpdk::SOCKET_ID_ANY as u32;
    // SAFETY: the port exists since `init`; null asks for the default configuration of a queue.
    let steps: [&dyn Fn() -> i32; 4] = unsafe {
        [
            &|| dpdk::rte_eth_dev_configure(port, 1, 1, &raw const config),
            &|| dpdk::rte_eth_rx_queue_setup(port, 0, DESCRIPTORS, any, ptr::null(), pool),
            &|| dpdk::rte_eth_tx_queue_setup(port, 0, DESCRIPTORS, any, ptr::null()),
            &|| dpdk::rte_eth_dev_start(port),
        ]
    };
    for (step, what) in steps
        .iter()
        .zip(["configure", "set up rx", "set up tx", "start"])
    {
        let status = step();
        if status != 0 {
            bail!("DPDK port {port}: {what}: error {status}");
        }
    }
    Ok(())
}
