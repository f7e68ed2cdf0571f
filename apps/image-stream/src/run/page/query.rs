//! Requests of pictures.

use super::exposure::View;
use super::picture::Region;

/// A request of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    pub view: View,
    /// Part of the image.
    pub region: Region,
    /// Pixels of a side that become one.
    pub factor: usize,
    /// The frame that is held: the image is not to be replaced by a later one.
    pub frame: Option<u64>,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// No name, or one that no request has.
    #[error("`{0}`: give view, row, column, rows, columns, factor or frame, each as name=value")]
    Name(String),
    /// Another view.
    #[error("view={0}: give latest, kept, mean or maximum")]
    View(String),
    /// No number.
    #[error("{0}={1}: give a whole number")]
    Number(&'static str, String),
    /// No factor.
    #[error("factor=0: it is the number of pixels of a side that become one, at least 1")]
    Factor,
}

impl Query {
    /// Reads the query of a request; without one, it is the latest image as a whole.
    ///
    /// # Errors
    /// The first part that is wrong.
    pub fn parse(text: Option<&str>) -> Result<Self, QueryError> {
        let mut query = Self {
            view: View::Latest,
            region: Region {
                row: 0,
                column: 0,
                rows: usize::MAX,
                columns: usize::MAX,
            },
            factor: 1,
            frame: None,
        };
        let parts = text.unwrap_or_default().split('&');
        for part in parts.filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let number = |name| {
                let parsed = value.parse::<u32>();
                let parsed = parsed.map_err(|_| QueryError::Number(name, value.into()));
                parsed.map(|number| number as usize)
            };
            match name {
                "view" => query.view = view(value)?,
                "row" => query.region.row = number("row")?,
                "column" => query.region.column = number("column")?,
                "rows" => query.region.rows = number("rows")?,
                "columns" => query.region.columns = number("columns")?,
                "factor" => query.factor = number("factor")?,
                "frame" => {
                    let frame = value.parse();
                    let frame = frame.map_err(|_| QueryError::Number("frame", value.into()))?;
                    query.frame = Some(frame);
                }
                _ => return Err(QueryError::Name(part.into())),
            }
        }
        if query.factor == 0 {
            return Err(QueryError::Factor);
        }
        Ok(query)
    }
}

fn view(name: &str) -> Result<View, QueryError> {
    let pictures = View::ALL.into_iter().filter(|view| *view != View::Curve);
    let mut named = pictures.filter(|view| view.name() == name);
    named.next().ok_or_else(|| QueryError::View(name.into()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_query_names_a_view_and_a_region() {
        let all = Region {
            row: 0,
            column: 0,
            rows: usize::MAX,
            columns: usize::MAX,
        };
        let query = Query::parse(None).unwrap();
        assert_eq!(
            (query.view, query.region, query.factor, query.frame),
            (View::Latest, all, 1, None)
        );
        let text = "view=mean&row=3&column=4&rows=5&columns=6&factor=2&frame=18446744073709551615";
        let query = Query::parse(Some(text)).unwrap();
        let region = Region {
            row: 3,
            column: 4,
            rows: 5,
            columns: 6,
        };
        assert_eq!(
            (query.view, query.region, query.factor, query.frame),
            (View::Mean, region, 2, Some(u64::MAX))
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, named) in [
            ("view=curve", "view=curve: give latest"),
            ("view=", "view=: give latest"),
            ("rows", "rows=: give a whole number"),
            ("row=-1", "row=-1: give a whole number"),
            ("row=99999999999", "row=99999999999"),
            ("factor=0", "factor=0"),
            ("frame=-2", "frame=-2: give a whole number"),
            ("faktor=1", "`faktor=1`: give view"),
            ("\u{fffd}=%00", "give view"),
        ] {
            let error = Query::parse(Some(text)).unwrap_err().to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
