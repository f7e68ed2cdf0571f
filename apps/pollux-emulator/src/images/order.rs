//! Order of the images of a stack: which of them a frame shows.

use serde::Serialize;

/// What a stack holds, and which of its images a frame shows.
///
/// Frame f is dark where `f % dark_every == dark_every - 1`, and shows dark image
/// `(f / dark_every) % darks` of the stack. Another frame shows image
/// `(f - f / dark_every) % images`, and `f % images` where `dark_every` is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StackOrder {
    /// Images with beam, above 0.
    images: u32,
    /// Dark images.
    darks: u32,
    /// From one dark frame to the next; 0: no frame is dark.
    dark_every: u32,
}

/// An image of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackImage {
    /// An image with beam.
    Light(u32),
    /// A dark image.
    Dark(u32),
}

impl StackOrder {
    /// The order of so many images with beam, at least one, and of the dark ones that are taken while
    /// these are sent once.
    #[must_use]
    pub fn new(images: u32, dark_every: u32) -> Self {
        let images = images.max(1);
        Self {
            images,
            darks: match dark_every {
                0 => 0,
                every => images.div_ceil((every - 1).max(1)),
            },
            dark_every,
        }
    }

    /// Number of images in the stack, the dark ones included.
    #[must_use]
    pub fn total(self) -> usize {
        self.images as usize + self.darks as usize
    }

    /// Number of images with beam.
    #[must_use]
    pub fn images(self) -> u32 {
        self.images
    }

    /// All images, in the order of their places in the stack.
    pub fn all(self) -> impl Iterator<Item = StackImage> {
        let light = (0..self.images).map(StackImage::Light);
        light.chain((0..self.darks).map(StackImage::Dark))
    }

    /// The image that a frame shows.
    #[must_use]
    #[inline]
    pub fn of_frame(self, number: u64) -> StackImage {
        let (images, every) = (u64::from(self.images), u64::from(self.dark_every));
        if every == 0 {
            return StackImage::Light((number % images) as u32);
        }
        let darks = number / every;
        if number % every == every - 1 {
            StackImage::Dark((darks % u64::from(self.darks)) as u32)
        } else {
            StackImage::Light(((number - darks) % images) as u32)
        }
    }

    /// Place in the stack of the image that a frame shows.
    #[must_use]
    #[inline]
    pub fn place(self, number: u64) -> usize {
        match self.of_frame(number) {
            StackImage::Light(n) => n as usize,
            StackImage::Dark(n) => self.images as usize + n as usize,
        }
    }

    /// Whether a frame is dark.
    #[must_use]
    #[inline]
    pub fn is_dark(self, number: u64) -> bool {
        matches!(self.of_frame(number), StackImage::Dark(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_go_through_the_stack_with_dark_ones_between() {
        let order = StackOrder::new(3, 0);
        let places: Vec<_> = (1..8).map(|n| order.place(n)).collect();
        assert_eq!((places, order.total()), (vec![1, 2, 0, 1, 2, 0, 1], 3));

        // Of four frames the last is dark: four images take two dark ones.
        let order = StackOrder::new(4, 4);
        assert_eq!((order.images(), order.total()), (4, 6));
        let places: Vec<_> = (0..12).map(|n| order.place(n)).collect();
        assert_eq!(places, [0, 1, 2, 4, 3, 0, 1, 5, 2, 3, 0, 4]);
        let dark: Vec<_> = (0..12).filter(|&n| order.is_dark(n)).collect();
        assert_eq!(dark, [3, 7, 11]);

        for (images, every) in [(1, 2), (5, 2), (7, 3), (2, 100)] {
            let order = StackOrder::new(images, every);
            let mut seen = vec![false; order.total()];
            for n in 0..10_000 {
                seen[order.place(n)] = true;
            }
            assert!(seen.iter().all(|seen| *seen), "{images} {every}: {seen:?}");
            assert_eq!(order.all().count(), order.total());
        }
    }
}
