//! The C that conversion is compared with (`peer/convert.c`).

use anyhow::{Result, ensure};
use pollux_images::Shape;
use pollux_images::calibration::{Calibration, Gain};

type Convert = unsafe extern "C" fn(*const u16, *const f32, *const f32, *const u8, usize, *mut i16);

type ConvertVetoCsr = unsafe extern "C" fn(
    *const u16,
    *const f32,
    *const f32,
    *const u8,
    usize,
    usize,
    i16,
    *mut i16,
    *mut i16,
    *mut u32,
    *mut u32,
) -> usize;

/// The functions as they are compiled for an instruction set.
macro_rules! compiled {
    ($($level:ident: $convert:ident, $csr:ident;)*) => {
        unsafe extern "C" {
            $(
                fn $convert(
                    raw: *const u16,
                    pedestal: *const f32,
                    gain: *const f32,
                    bad: *const u8,
                    n: usize,
                    out: *mut i16,
                );
                fn $csr(
                    raw: *const u16,
                    pedestal: *const f32,
                    gain: *const f32,
                    bad: *const u8,
                    rows: usize,
                    width: usize,
                    threshold: i16,
                    out: *mut i16,
                    values: *mut i16,
                    columns: *mut u32,
                    starts: *mut u32,
                ) -> usize;
            )*
        }
        $(const $level: (Convert, ConvertVetoCsr) = ($convert, $csr);)*
    };
}

compiled! {
    BASELINE: peer_convert, peer_convert_veto_csr;
    V3: peer_convert_v3, peer_convert_veto_csr_v3;
    V4: peer_convert_v4, peer_convert_veto_csr_v4;
}

/// The pixels of an image from a threshold on, row by row.
pub(crate) struct Listed {
    pub(crate) values: Vec<i16>,
    pub(crate) columns: Vec<u32>,
    pub(crate) starts: Vec<u32>,
}

impl Listed {
    pub(crate) fn new(shape: Shape) -> Self {
        Self {
            values: vec![0; shape.pixels()],
            columns: vec![0; shape.pixels()],
            starts: vec![0; shape.rows + 1],
        }
    }
}

/// The C with the tables of a module.
pub(crate) struct Peer {
    /// What it was compiled by, and for.
    pub(crate) name: String,
    convert: Convert,
    convert_veto_csr: ConvertVetoCsr,
    shape: Shape,
    pedestals: Vec<f32>,
    gains: Vec<f32>,
    bad: Vec<u8>,
}

impl Peer {
    /// Compiled for every x86-64.
    pub(crate) fn plain(calibration: &Calibration) -> Self {
        Self::new(calibration, BASELINE, "")
    }

    /// Compiled for the highest level of x86-64 that this CPU has; that of [`plain`](Self::plain) if
    /// it has none.
    pub(crate) fn of_this_cpu(calibration: &Calibration) -> Self {
        let v3 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("f16c")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("movbe");
        let v4 = v3
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        let (functions, flag) = if v4 {
            (V4, " -march=x86-64-v4")
        } else if v3 {
            (V3, " -march=x86-64-v3")
        } else {
            (BASELINE, "")
        };
        Self::new(calibration, functions, flag)
    }

    fn new(calibration: &Calibration, functions: (Convert, ConvertVetoCsr), flag: &str) -> Self {
        let tables = |of: fn(&Calibration, Gain) -> &[f32]| {
            Gain::ALL.map(|gain| of(calibration, gain)).concat()
        };
        Self {
            name: format!("C -O3{flag}, {}", env!("C_COMPILER")),
            convert: functions.0,
            convert_veto_csr: functions.1,
            shape: calibration.shape(),
            pedestals: tables(Calibration::pedestals),
            gains: tables(Calibration::gains),
            bad: calibration.bad().iter().copied().map(u8::from).collect(),
        }
    }

    /// Converts an image.
    pub(crate) fn convert(&self, raw: &[u16], out: &mut [i16]) -> Result<()> {
        let pixels = self.shape.pixels();
        ensure!(raw.len() == pixels && out.len() == pixels, "another image");
        // SAFETY: the tables have three planes of so many pixels, raw and out so many, and the CPU has
        // the instructions: see `of_this_cpu`.
        unsafe {
            (self.convert)(
                raw.as_ptr(),
                self.pedestals.as_ptr(),
                self.gains.as_ptr(),
                self.bad.as_ptr(),
                pixels,
                out.as_mut_ptr(),
            );
        }
        Ok(())
    }

    /// Converts an image, and lists its pixels of at least `threshold` photons; their number.
    pub(crate) fn convert_veto_csr(
        &self,
        raw: &[u16],
        threshold: i16,
        out: &mut [i16],
        listed: &mut Listed,
    ) -> Result<usize> {
        let Shape { rows, columns } = self.shape;
        let pixels = self.shape.pixels();
        ensure!(raw.len() == pixels && out.len() == pixels, "another image");
        ensure!(
            listed.values.len() == pixels
                && listed.columns.len() == pixels
                && listed.starts.len() == rows + 1,
            "lists of another image"
        );
        // SAFETY: as in `convert`; there is room in the lists for all pixels, and one start for each
        // row and one for their end.
        let found = unsafe {
            (self.convert_veto_csr)(
                raw.as_ptr(),
                self.pedestals.as_ptr(),
                self.gains.as_ptr(),
                self.bad.as_ptr(),
                rows,
                columns,
                threshold,
                out.as_mut_ptr(),
                listed.values.as_mut_ptr(),
                listed.columns.as_mut_ptr(),
                listed.starts.as_mut_ptr(),
            )
        };
        Ok(found)
    }
}
