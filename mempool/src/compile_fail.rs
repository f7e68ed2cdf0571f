//! What must not compile, beside the nearest thing that does: each pair differs in one line, so that
//! the failure is of that line.
//!
//! # A container of long borrows is none of short ones
//!
//! What one side puts in, the other side takes out as the type that it knows. So `Ring<&'static str>`
//! must not pass for `Ring<&'short str>`: what was pushed there would be read when it is gone.
//!
//! [`Mpmc`](crate::ring::Mpmc):
//! ```
//! # use pollux_mempool::ring::Mpmc;
//! let ring: Mpmc<&'static str> = Mpmc::new(1).unwrap();
//! let text = String::from("x");
//! let short: &Mpmc<&'static str> = &ring;
//! let _ = short.push("x");
//! # drop(text);
//! assert_eq!(ring.pop(), Some("x"));
//! ```
//! ```compile_fail,E0597
//! # use pollux_mempool::ring::Mpmc;
//! let ring: Mpmc<&'static str> = Mpmc::new(1).unwrap();
//! {
//!     let text = String::from("x");
//!     let short: &Mpmc<&str> = &ring;
//!     let _ = short.push(&text);
//! }
//! assert_eq!(ring.pop(), Some("x"));
//! ```
//!
//! [`spsc::Producer`](crate::ring::spsc::Producer):
//! ```
//! # use pollux_mempool::ring::spsc::{Consumer, Producer, channel};
//! let (producer, mut consumer): (Producer<&'static str>, Consumer<&'static str>) = channel(1).unwrap();
//! {
//!     let mut short: Producer<&'static str> = producer;
//!     let _ = short.push("x");
//! }
//! assert_eq!(consumer.pop(), Some("x"));
//! ```
//! ```compile_fail,E0597
//! # use pollux_mempool::ring::spsc::{Consumer, Producer, channel};
//! let (producer, mut consumer): (Producer<&'static str>, Consumer<&'static str>) = channel(1).unwrap();
//! {
//!     let text = String::from("x");
//!     let mut short: Producer<&str> = producer;
//!     let _ = short.push(&text);
//! }
//! assert_eq!(consumer.pop(), Some("x"));
//! ```
//!
//! [`spsc::Consumer`](crate::ring::spsc::Consumer), whose items would otherwise be taken for others:
//! ```
//! # use pollux_mempool::ring::spsc::{Consumer, channel};
//! fn shorter<'a>(consumer: Consumer<&'a str>, _: &'a str) -> Consumer<&'a str> {
//!     consumer
//! }
//! ```
//! ```compile_fail
//! # use pollux_mempool::ring::spsc::{Consumer, channel};
//! fn shorter<'a>(consumer: Consumer<&'static str>, _: &'a str) -> Consumer<&'a str> {
//!     consumer
//! }
//! ```
//!
//! [`ObjectCache`](crate::ObjectCache), which flushes into a ring that others know:
//! ```
//! # use std::sync::Arc;
//! # use pollux_mempool::{ObjectCache, ring::Mpmc};
//! let ring: Arc<Mpmc<&'static str>> = Arc::new(Mpmc::new(4).unwrap());
//! {
//!     let mut cache: ObjectCache<&'static str> = ObjectCache::new(Arc::clone(&ring), 2).unwrap();
//!     let _ = cache.put_bulk(&["x"]);
//! }
//! assert_eq!(ring.pop(), Some("x"));
//! ```
//! ```compile_fail,E0597
//! # use std::sync::Arc;
//! # use pollux_mempool::{ObjectCache, ring::Mpmc};
//! let ring: Arc<Mpmc<&'static str>> = Arc::new(Mpmc::new(4).unwrap());
//! {
//!     let text = String::from("x");
//!     let cache: ObjectCache<&'static str> = ObjectCache::new(Arc::clone(&ring), 2).unwrap();
//!     let mut cache: ObjectCache<&str> = cache;
//!     let _ = cache.put_bulk(&[&text]);
//! }
//! assert_eq!(ring.pop(), Some("x"));
//! ```
//!
//! [`BoxProducer`](crate::BoxProducer):
//! ```
//! # use pollux_mempool::{BoxConsumer, BoxProducer, box_ring};
//! let (producer, mut consumer): (BoxProducer<&'static str>, BoxConsumer<&'static str>) = box_ring(1).unwrap();
//! {
//!     let mut short: BoxProducer<&'static str> = producer;
//!     let _ = short.push(Box::new("x"));
//! }
//! assert_eq!(consumer.pop().as_deref(), Some(&"x"));
//! ```
//! ```compile_fail,E0597
//! # use pollux_mempool::{BoxConsumer, BoxProducer, box_ring};
//! let (producer, mut consumer): (BoxProducer<&'static str>, BoxConsumer<&'static str>) = box_ring(1).unwrap();
//! {
//!     let text = String::from("x");
//!     let mut short: BoxProducer<&str> = producer;
//!     let _ = short.push(Box::new(&text));
//! }
//! assert_eq!(consumer.pop().as_deref(), Some(&"x"));
//! ```
//!
//! [`BoxConsumer`](crate::BoxConsumer):
//! ```
//! # use pollux_mempool::BoxConsumer;
//! fn shorter<'a>(consumer: BoxConsumer<&'a str>, _: &'a str) -> BoxConsumer<&'a str> {
//!     consumer
//! }
//! ```
//! ```compile_fail
//! # use pollux_mempool::BoxConsumer;
//! fn shorter<'a>(consumer: BoxConsumer<&'static str>, _: &'a str) -> BoxConsumer<&'a str> {
//!     consumer
//! }
//! ```
//!
//! # Elements beside a pool are promised by unsafe code
//! ```
//! # use std::ptr::NonNull;
//! # use pollux_mempool::{MbufMap, MbufSlot, Mempool};
//! fn map<E: MbufSlot>(pool: &Mempool) -> MbufMap<E> {
//!     unsafe { pool.mbuf_map(NonNull::dangling()) }
//! }
//! ```
//! ```compile_fail,E0133
//! # use std::ptr::NonNull;
//! # use pollux_mempool::{MbufMap, MbufSlot, Mempool};
//! fn map<E: MbufSlot>(pool: &Mempool) -> MbufMap<E> {
//!     pool.mbuf_map(NonNull::dangling())
//! }
//! ```
//! ```
//! # use pollux_mempool::{MbufSlot, WINDOW};
//! struct Wrong;
//! unsafe impl MbufSlot for Wrong {
//! #   const SPACING: usize = 64;
//! #   const AT: usize = 0;
//! #   const OFFSET: usize = 0;
//! #   const LEN: usize = 2;
//! #   const TOTAL: usize = 4;
//! #   const HEADROOM: u16 = 0;
//! #   const PLAIN: [u8; WINDOW] = [0; WINDOW];
//! #   const REQUIRED: [u8; WINDOW] = [0; WINDOW];
//! }
//! ```
//! ```compile_fail,E0200
//! # use pollux_mempool::{MbufSlot, WINDOW};
//! struct Wrong;
//! impl MbufSlot for Wrong {
//! #   const SPACING: usize = 64;
//! #   const AT: usize = 0;
//! #   const OFFSET: usize = 0;
//! #   const LEN: usize = 2;
//! #   const TOTAL: usize = 4;
//! #   const HEADROOM: u16 = 0;
//! #   const PLAIN: [u8; WINDOW] = [0; WINDOW];
//! #   const REQUIRED: [u8; WINDOW] = [0; WINDOW];
//! }
//! ```
