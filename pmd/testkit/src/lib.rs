//! Test support for drivers of Pollux, those of `pollux-pmd` and those outside it.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`fake`] | the fake bus: a device whose registers, memory and time are a model's |
//! | [`adversary`] | a device that is not to be trusted, and a run of a driver against it |
//! | [`only_work`] | the hot-path guard on a port whose device is a fake |
//! | [`guard`] | the hot-path guard: proves that code calls neither the allocator nor the kernel |
//! | [`frames`] | frames built byte by byte, as the oracle of parsers and offloads |
//! | [`ports`] | pools and statistics of ports under test |
//! | [`threads`] | the end of threads that poll, when a test fails too |
//! | [`netns`] | network namespaces, veth pairs and a switch, for ports on interfaces of the kernel |
//! | `models` | the devices whose drivers `pollux-pmd` has; with the feature `models` |
//!
//! A program that links this crate gets the guard's global allocator, which is the system's and
//! counts calls.

pub mod adversary;
pub mod fake;
pub mod frames;
pub mod guard;
#[cfg(feature = "models")]
pub mod models;
pub mod netns;
pub mod only_work;
pub mod ports;
pub mod threads;

/// The example of the page that the package shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
