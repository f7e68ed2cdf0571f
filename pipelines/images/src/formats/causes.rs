//! Drop causes of packets.

use pollux_pmd::{Cause, CauseError};

use super::header::PacketError;

/// Drop causes of packets that belong to no frame of the detector.
#[derive(Clone, Copy, Debug)]
pub struct PacketCauses {
    /// `detector-type`: a packet of another type of detector.
    pub detector: Cause,
    /// `packet-size`: a payload of another length.
    pub size: Cause,
    /// `packet-range`: a packet number that no packet of a frame has.
    pub out_of_range: Cause,
}

impl PacketCauses {
    /// Declares the causes; a repeated declaration gives the same ones.
    ///
    /// # Errors
    /// The process has the maximum number of causes.
    pub fn declare() -> Result<Self, CauseError> {
        Ok(Self {
            detector: Cause::declare("detector-type", "a packet of another type of detector")?,
            size: Cause::declare("packet-size", "a detector packet of another length")?,
            out_of_range: Cause::declare(
                "packet-range",
                "a packet number that no packet of a frame has",
            )?,
        })
    }

    /// The cause for which a packet with this error is dropped; an unknown version is
    /// [`Cause::BadVersion`].
    #[must_use]
    pub fn of(&self, error: PacketError) -> Cause {
        match error {
            PacketError::Size { .. } => self.size,
            PacketError::Version(_) => Cause::BadVersion,
            PacketError::Detector { .. } => self.detector,
            PacketError::OutOfRange { .. } => self.out_of_range,
        }
    }
}
