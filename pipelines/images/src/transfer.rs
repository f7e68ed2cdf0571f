//! Data transfer processes: sub-images of one image stream for several receivers at once.
//!
//! "A detector can produce multiple concurrent data flows to multiple data receivers. [...] When the
//! ingress capacity of a data receiver is limited, only the throughput of the data flow directed to
//! this specific receiver has to be decreased. This can be done either by sub-sampling the transmitted
//! images either by time slicing (one of N images acquired) or by spatial slicing (Region of Interest)
//! or both" (R. Ponsard, "High Throughput, Low Latency Online Image Processing by GPU/FPGA
//! Coprocessors using RDMA Techniques", 2020, section 2.3.1).
//!
//! ```text
//!                     +-- wants? -- copy regions --> ring of buffers --> SubImages (thread of a file)
//!  image --> Receivers +-- wants? -- copy regions --> ring of buffers --> SubImages (live stream)
//!                     +-- wants? -- no buffer: overrun of this receiver alone
//! ```
//!
//! A [`Transfer`] selects images and copies regions of them. [`Receivers`] has one for each receiver,
//! with a ring of buffers, and [`SubImages`] is a receiver's end of its ring. A buffer belongs to one
//! side at a time: it cannot be overwritten while it is read.
//!
//! ```
//! use pollux_images::Shape;
//! use pollux_images::transfer::{DEFAULT_MEMORY, Receivers, TransferConfig};
//! use pollux_pipelines::Moment;
//!
//! #[derive(serde::Deserialize)]
//! struct Config {
//!     receiver: Vec<TransferConfig>,
//! }
//! let config: Config = toml::from_str(
//!     r#"
//!     [[receiver]]
//!     name = "file"
//!
//!     [[receiver]]
//!     name = "centre"
//!     every = 2
//!     region = [{ first_row = 1, rows = 2, first_column = 1, columns = 2 }]
//!     "#,
//! )?;
//! let shape = Shape { rows: 4, columns: 4 };
//! let (mut receivers, mut ends) = Receivers::new(&config.receiver, shape, DEFAULT_MEMORY)?;
//! let image: Vec<u16> = (0..16).collect();
//! for number in 0..3 {
//!     receivers.push(number, Moment(number), &image)?;
//! }
//! let sub_image = ends[1].try_next().expect("image 0");
//! assert_eq!(sub_image.pixels(), [5, 6, 9, 10]);
//! assert_eq!(ends[1].try_next().expect("image 2").number(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod config;
mod copy;
mod receivers;
mod region;
mod ring;
mod view;

pub use config::{
    MAX_BUFFERS, MAX_RECEIVERS, MAX_REGIONS, TransferConfig, TransferError, check_all,
};
pub use copy::Transfer;
pub use receivers::{DEFAULT_MEMORY, Receivers};
pub use region::{MAX_BUFFER_PIXELS, Region};
pub use ring::{Element, SubImage, SubImages};
pub use view::{TransferCounts, TransferView};

#[cfg(test)]
mod tests;
