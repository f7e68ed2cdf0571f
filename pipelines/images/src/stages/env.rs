//! What the stages need to know of the images.

use crate::Shape;

/// The images of a run, for the constructors of the stages.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ImagesEnv {
    /// Shape of an image: modules one below the other.
    pub shape: Shape,
    /// Rows of a module.
    pub module_rows: usize,
    /// Pixels that are bad in all images: true for each of them.
    pub mask: Option<Vec<bool>>,
    /// Whether the outputs take vetoed images too: they are compressed then.
    pub vetoed: bool,
}

impl ImagesEnv {
    /// Images of this shape, of modules of so many rows, without a mask; outputs take those alone that
    /// are not vetoed.
    #[must_use]
    pub fn new(shape: Shape, module_rows: usize) -> Self {
        Self {
            shape,
            module_rows,
            mask: None,
            vetoed: false,
        }
    }
}
