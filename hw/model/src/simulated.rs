//! A card without a machine around it.

/// The commit in the identity of simulated cards: none, so that a test recognises it.
pub const GIT_HASH: [u8; 20] =
    *b"\x01\x23\x45\x67\x89\xab\xcd\xef\xfe\xdc\xba\x98\x76\x54\x32\x10\x0f\x1e\x2d\x3c";

/// Functions of a card: function 0, which manages the card, and virtual ones.
pub const FUNCTIONS: usize = 8;

/// The host memory that the functions of a card reach, each by its own bus addresses.
pub trait Host {
    /// Reads memory. Called once for each read request of the card, which crosses no page of
    /// 4 KiB.
    ///
    /// # Errors
    /// The completion status instead of data, or that there is none.
    fn read(&mut self, function: u8, at: u64, out: &mut [u8]) -> Result<(), ReadError>;

    /// Writes memory. Posted: the card does not learn the result.
    fn write(&mut self, function: u8, at: u64, bytes: &[u8]);

    /// Signals a vector (MSI-X), after all writes before it.
    fn interrupt(&mut self, function: u8, vector: u16);
}

/// How a read of memory can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// Completed as an unsupported request.
    Unsupported,
    /// Completed with completer abort.
    Abort,
    /// Completed with poisoned data.
    Poisoned,
    /// Not completed at all.
    Unanswered,
}

/// A frame on a wire, from its destination address to its last byte before the FCS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireFrame {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// How it ends.
    pub end: FrameEnd,
}

impl WireFrame {
    /// A good frame.
    #[must_use]
    pub fn good(bytes: impl Into<Vec<u8>>) -> Self {
        let (bytes, end) = (bytes.into(), FrameEnd::Good);
        Self { bytes, end }
    }
}

/// How a frame ends on a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameEnd {
    /// With its frame check sequence.
    Good,
    /// With another frame check sequence.
    BadFcs,
    /// With an error character in its last word.
    Error,
}

/// State of a port's wire between frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkSignal {
    /// Idle: the link is up.
    Idle,
    /// The sequence "local fault" (IEEE 802.3 clause 46.3.4).
    LocalFault,
    /// The sequence "remote fault".
    RemoteFault,
}

/// Inputs of the timing connector; a pulse on one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimingInput {
    /// Enable of the external clock.
    Clock,
    /// Start of burst.
    Start,
    /// End of burst.
    End,
    /// Trigger.
    Trigger,
}

/// A simulated card: the software card, or the RTL. Deterministic: the same calls give the
/// same results.
pub trait SimulatedCard: Send + 'static {
    /// The function, below [`FUNCTIONS`], of the register accesses, settings and resets that follow;
    /// 0 at first.
    fn act_as(&mut self, function: u8);

    /// Reads a register of 1, 2 or 4 bytes, aligned and inside its window. All writes of the card
    /// before the completion are done when this returns.
    fn read(&mut self, host: &mut dyn Host, bar: u8, at: usize, width: usize) -> u32;

    /// Writes a register. Posted: it takes effect later, and before any later access.
    fn write(&mut self, host: &mut dyn Host, bar: u8, at: usize, width: usize, value: u32);

    /// Advances time, in picoseconds.
    fn advance(&mut self, host: &mut dyn Host, ps: u64);

    /// Time since it was made, in picoseconds.
    fn now(&self) -> u64;

    /// Bus mastering is enabled or disabled (PCI 3.0 section 6.2.2).
    fn set_bus_master(&mut self, host: &mut dyn Host, on: bool);

    /// MSI-X is enabled, and so many vectors are not masked; 0: it is disabled.
    fn set_msix(&mut self, host: &mut dyn Host, vectors: u16);

    /// A function level reset: of function 0 the whole card is in its initial state, as after
    /// power-on, except for time and wires; of another, that function has forgotten its rings, lists,
    /// queues and pages.
    fn reset(&mut self, host: &mut dyn Host);

    /// A frame to a port. Frames follow each other at line rate, from now on.
    fn put(&mut self, port: usize, frame: WireFrame);

    /// Frames that have not arrived at a port yet.
    fn coming(&self, port: usize) -> usize;

    /// The next frame that a port has sent, with padding; its end is as a receiver finds it.
    fn take(&mut self, port: usize) -> Option<WireFrame>;

    /// Sets the state of the wire to a port.
    fn set_signal(&mut self, port: usize, signal: LinkSignal);

    /// A pulse at the timing connector.
    fn pulse(&mut self, input: TimingInput);

    /// The host sends a completion of no read of the card, with a tag that is not open.
    fn send_stray_completion(&mut self, tag: u16);
}
