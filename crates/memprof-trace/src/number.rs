//! Numbers as in JSON and Ruby: integers or floats.

use std::cmp::Ordering;

use serde::{Serialize, Serializer};

/// A number from a line, or computed from such numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer.
    Int(i64),
    /// Any other number.
    Float(f64),
}

impl Default for Number {
    fn default() -> Self {
        Number::Int(0)
    }
}

impl Number {
    pub fn float(self) -> f64 {
        match self {
            Number::Int(value) => value as f64,
            Number::Float(value) => value,
        }
    }

    pub fn is_zero(self) -> bool {
        self.float() == 0.0
    }

    /// Converts to seconds from milliseconds, or from seconds.
    pub fn seconds(self, milliseconds: bool) -> Number {
        if milliseconds { Number::Float(self.float() * 0.001) } else { self }
    }

    pub fn compare(&self, other: &Number) -> Ordering {
        match (self, other) {
            (Number::Int(one), Number::Int(two)) => one.cmp(two),
            _ => self.float().total_cmp(&other.float()),
        }
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Number::Int(value) => serializer.serialize_i64(*value),
            Number::Float(value) => serializer.serialize_f64(*value),
        }
    }
}

/// A sum computed like Ruby's `Array#sum`: exact while all numbers are integers, and compensated (Kahan-Babuska) from the first
/// float on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    whole: i128,
    float: Option<(f64, f64)>,
}

impl Sum {
    pub fn add(&mut self, number: Number) {
        let (sum, lost) = match (self.float, number) {
            (None, Number::Int(value)) => {
                self.whole += i128::from(value);
                return;
            }
            (None, Number::Float(_)) => (self.whole as f64, 0.0),
            (Some(both), _) => both,
        };
        let value = number.float();
        let next = sum + value;
        let rest =
            if sum.abs() >= value.abs() { (sum - next) + value } else { (value - next) + sum };
        self.float = Some((next, lost + rest));
    }

    pub fn total(&self) -> Number {
        match self.float {
            Some((sum, lost)) => Number::Float(sum + lost),
            None => i64::try_from(self.whole).map_or(Number::Float(self.whole as f64), Number::Int),
        }
    }
}

impl FromIterator<Number> for Sum {
    fn from_iter<I: IntoIterator<Item = Number>>(numbers: I) -> Sum {
        let mut sum = Sum::default();
        numbers.into_iter().for_each(|number| sum.add(number));
        sum
    }
}
