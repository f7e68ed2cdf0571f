//! `image-stream`: images of a detector, received, processed and written.

use std::process::ExitCode;

fn main() -> ExitCode {
    image_stream::program::main()
}
