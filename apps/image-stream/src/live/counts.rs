//! Counts of a live stream: images and clients.

use pollux_pmd::Count;

/// Outcomes of the images. Every image that was pushed is in one of the counts when the stream has
/// ended.
#[derive(Debug, Default)]
pub struct LiveCounts {
    /// Images that the system has taken for a client.
    pub sent: Count,
    /// Images that were dropped because all clients were busy.
    pub overrun: Count,
    /// Images that were dropped because no client was connected.
    pub no_client: Count,
    /// Images outside of a series, or whose pixels do not fit it.
    pub refused: Count,
    /// Images that were being sent when their client was disconnected, or waited when the stream
    /// ended.
    pub lost: Count,
    /// Clients that are connected now.
    pub clients: Count,
    /// Clients that have been connected.
    pub connected: Count,
    /// Connections that were refused: no PULL socket, or too many clients.
    pub refused_clients: Count,
    /// Clients that were disconnected because they took nothing.
    pub stalled_clients: Count,
}
