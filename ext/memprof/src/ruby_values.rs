//! Converts report structs to Ruby hashes with string keys, arrays, strings and numbers.

use magnus::value::ReprValue;
use magnus::{Error, IntoValue, Ruby, Value};
use serde::Serialize;

/// Converts anything that serde can write as JSON to Ruby.
pub fn to_ruby(ruby: &Ruby, data: &impl Serialize) -> Result<Value, Error> {
    let json = serde_json::to_value(data);
    let json =
        json.map_err(|error| Error::new(ruby.exception_runtime_error(), error.to_string()))?;
    value(ruby, &json)
}

fn value(ruby: &Ruby, json: &serde_json::Value) -> Result<Value, Error> {
    use serde_json::Value as Json;
    Ok(match json {
        Json::Null => ruby.qnil().as_value(),
        Json::Bool(bool) => bool.into_value_with(ruby),
        Json::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => number.into_value_with(ruby),
            (None, Some(number)) => number.into_value_with(ruby),
            (None, None) => number.as_f64().into_value_with(ruby),
        },
        Json::String(string) => ruby.str_new(string).as_value(),
        Json::Array(items) => {
            let array = ruby.ary_new_capa(items.len());
            for item in items {
                array.push(value(ruby, item)?)?;
            }
            array.as_value()
        }
        Json::Object(fields) => {
            let hash = ruby.hash_new();
            for (key, field) in fields {
                hash.aset(ruby.str_new(key), value(ruby, field)?)?;
            }
            hash.as_value()
        }
    })
}
