//! AF_PACKET tests, on veth pairs in network namespaces of their own, against the kernel's own UDP.

mod faults;
mod filter;
mod link;
mod traffic;
