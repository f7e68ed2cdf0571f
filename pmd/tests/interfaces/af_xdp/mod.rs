//! AF_XDP tests, on veth pairs in network namespaces of their own, against the kernel's own UDP.

mod faults;
mod life;
mod others;
mod quarantine;
mod queues;
mod traffic;
