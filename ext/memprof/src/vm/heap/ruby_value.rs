//! VALUE: an immediate or an address.

use memprof_dump::record::Value;
use rb_sys::{ID, VALUE};

use super::name_table::Names;

/// Low byte of an immediate Symbol, and the shift of its ID (ruby/internal/special_consts.h).
const SYMBOL_FLAG: VALUE = 0x0c;
const SPECIAL_SHIFT: u32 = 8;

/// True for an address of a heap object.
#[inline]
pub fn is_address(value: VALUE) -> bool {
    // false is 0, nil 4 or 8, by version.
    value & 7 == 0 && value > 8
}

/// Decodes the value. Only the word itself is read.
#[inline(always)]
pub fn decode(names: &mut Names, value: VALUE) -> Value {
    if is_address(value) {
        return Value::Address(value);
    }
    if value & 1 == 1 {
        return names.number(Value::Int((value as i64) >> 1));
    }
    immediate(names, value)
}

/// The value as JSON, as in the containers of the memprof format.
pub fn json(names: &mut Names, value: VALUE) -> String {
    match decode(names, value) {
        Value::Address(address) => format!("\"{address:#x}\""),
        Value::Int(number) => number.to_string(),
        Value::True => "true".into(),
        Value::False => "false".into(),
        Value::Float(number) if number.is_finite() => serde_json::Value::from(number).to_string(),
        Value::Float(number) => format!("\"{number}\""),
        Value::Symbol(name) => {
            serde_json::Value::from(format!(":{}", names.tables.name(name))).to_string()
        }
        Value::Name(name) => serde_json::Value::from(names.tables.name(name)).to_string(),
        _ => "null".into(),
    }
}

#[inline(always)]
fn immediate(names: &mut Names, value: VALUE) -> Value {
    if value == rb_sys::Qnil as VALUE {
        Value::Nil
    } else if value == rb_sys::Qtrue as VALUE {
        Value::True
    } else if value == rb_sys::Qfalse as VALUE {
        Value::False
    } else if value & 3 == 2 {
        names.number(Value::Float(flonum(value)))
    } else if value & 0xff == SYMBOL_FLAG {
        Value::Symbol(names.symbol((value >> SPECIAL_SHIFT) as ID))
    } else {
        Value::Undef
    }
}

/// The Float in a flonum (rb_float_flonum_value in internal/numeric.h).
fn flonum(value: VALUE) -> f64 {
    const ZERO: VALUE = 0x8000_0000_0000_0002;
    if value == ZERO {
        return 0.0;
    }
    let sign = value >> 63;
    f64::from_bits(((2u64.wrapping_sub(sign)) | (value & !3)).rotate_right(3))
}
