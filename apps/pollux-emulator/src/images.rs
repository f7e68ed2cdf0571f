//! Emulated image detector: modules of JUNGFRAU, EIGER or MOENCH that send a precomputed stack of
//! images as UDP packets, with a known truth and with faults on demand.
//!
//! It is the detector emulator (REMU) of the RASHPA concept: the images are computed or read once,
//! then sent again and again at the frame rate, or as fast as the port takes them.
//!
//! | module | contents |
//! | --- | --- |
//! | [`config`] | everything that determines what is sent |
//! | [`scene`] | photons of an image: Bragg peaks, powder rings, background |
//! | [`response`] | pixels of a module: pedestals, three gains, noise, bad pixels |
//! | [`synthesis`] | both together: raw images from a seed, and the truth about them |
//! | [`order`], [`stack`] | which image a frame shows; the images in memory |
//! | [`stream`] | packets in the order of sending, with faults and an exact record of them |
//! | [`link`] | out through the queues of a port or through the kernel's sockets |
//! | [`source`] | the poll loop: an [`ImageSource`](source::ImageSource) |

pub mod config;
pub mod link;
pub mod order;
mod random;
pub mod response;
pub mod scene;
pub mod source;
pub mod stack;
pub mod stream;
pub mod synthesis;
