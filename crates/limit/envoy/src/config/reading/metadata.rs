//! Values under `metadata`, as plain values.

use crate::config::metadata::{Metadata, Value};
use crate::config::yaml::{Plain, Shape, View, as_go_prints};

/// Converts a map with all its content.
pub(super) fn of(map: View<'_>) -> Metadata {
    map_of(map, |key| match key.shape() {
        // yaml.v2 takes keys as strings like this in the outermost map only.
        Shape::Scalar(key) if key.plain != Plain::Null => key.text.to_string(),
        _ => String::new(),
    })
}

fn map_of(view: View<'_>, name: fn(View<'_>) -> String) -> Metadata {
    let entries = view.entries().into_iter();
    entries
        .map(|(key, value)| (name(key), value_of(value)))
        .collect()
}

fn value_of(view: View<'_>) -> Value {
    match view.shape() {
        Shape::Map => Value::Map(map_of(view, as_go_prints)),
        Shape::List => Value::List(view.elements().map(value_of).collect()),
        Shape::Scalar(scalar) => match scalar.plain {
            Plain::Null => Value::Null,
            Plain::Bool(value) => Value::Bool(value),
            #[expect(
                clippy::cast_precision_loss,
                reason = "the wire knows no other numbers"
            )]
            Plain::Int(value) => Value::Number(value as f64),
            #[expect(
                clippy::cast_precision_loss,
                reason = "the wire knows no other numbers"
            )]
            Plain::Uint(value) => Value::Number(value as f64),
            Plain::Float(value) => Value::Number(value),
            Plain::Date | Plain::Text => Value::Text(scalar.text.to_string()),
        },
    }
}
