//! Messages of schema da00: arrays of data with their axes.
//!
//! Source: ess-dmsc/streaming-data-types, schemas/da00_dataarray.fbs.

use flatbuffers::{FlatBufferBuilder, TableFinishedWIPOffset, WIPOffset};

use crate::schema::field;

/// Fields of `da00_Variable`.
const NAME: u16 = field(0);
const UNIT: u16 = field(1);
const LABEL: u16 = field(2);
const DATA_TYPE: u16 = field(4);
const AXES: u16 = field(5);
const SHAPE: u16 = field(6);
const VALUES: u16 = field(7);

/// Fields of `da00_DataArray`.
const SOURCE_NAME: u16 = field(0);
const TIMESTAMP: u16 = field(1);
const VARIABLES: u16 = field(2);

/// Numbers of `da00_dtype`.
const UINT64: i8 = 8;
const FLOAT64: i8 = 10;

/// Values of a variable.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    /// One number without an axis.
    Count(u64),
    /// Along one axis, with its name.
    Counts(&'a str, &'a [u64]),
    /// Along one axis, with its name.
    Numbers(&'a str, &'a [f64]),
}

/// A named array of a message.
#[derive(Clone, Copy, Debug)]
pub struct Variable<'a> {
    /// The name of what it represents; that of an axis for the axis' coordinates.
    pub name: &'a str,
    /// Unit of its values.
    pub unit: &'a str,
    /// Describes it to a reader.
    pub label: &'a str,
    /// Its values.
    pub values: Values<'a>,
}

impl Variable<'_> {
    fn build(&self, builder: &mut FlatBufferBuilder<'_>) -> WIPOffset<TableFinishedWIPOffset> {
        let counts = |values: &[u64]| values.iter().flat_map(|n| n.to_le_bytes()).collect();
        let (data_type, axis, shape, bytes): (_, _, _, Vec<u8>) = match self.values {
            Values::Count(value) => (UINT64, None, None, counts(&[value])),
            Values::Counts(axis, values) => {
                (UINT64, Some(axis), Some(values.len()), counts(values))
            }
            Values::Numbers(axis, values) => {
                let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
                (FLOAT64, Some(axis), Some(values.len()), bytes)
            }
        };
        let axes: Vec<_> = axis
            .into_iter()
            .map(|axis| builder.create_string(axis))
            .collect();
        let axes = builder.create_vector(&axes);
        let shape: Vec<_> = shape.into_iter().map(|len| len as i64).collect();
        let shape = builder.create_vector(&shape);
        let values = builder.create_vector(&bytes);
        let [name, unit, label] =
            [self.name, self.unit, self.label].map(|text| builder.create_string(text));
        let table = builder.start_table();
        builder.push_slot_always(NAME, name);
        builder.push_slot_always(UNIT, unit);
        builder.push_slot_always(LABEL, label);
        builder.push_slot_always(AXES, axes);
        builder.push_slot_always(SHAPE, shape);
        builder.push_slot_always(VALUES, values);
        builder.push_slot_always(DATA_TYPE, data_type);
        builder.end_table(table)
    }
}

/// A message of a source at a time, in ns since the Unix epoch.
#[must_use]
pub fn da00(source: &str, time_ns: i64, variables: &[Variable<'_>]) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let built: Vec<_> = variables
        .iter()
        .map(|variable| variable.build(&mut builder))
        .collect();
    let variables = builder.create_vector(&built);
    let source = builder.create_string(source);
    let table = builder.start_table();
    builder.push_slot_always(TIMESTAMP, time_ns);
    builder.push_slot_always(SOURCE_NAME, source);
    builder.push_slot_always(VARIABLES, variables);
    let table = builder.end_table(table);
    builder.finish(table, Some("da00"));
    builder.finished_data().to_vec()
}
