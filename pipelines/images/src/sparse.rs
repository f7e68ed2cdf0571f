//! Images as compressed sparse rows (CSR).
