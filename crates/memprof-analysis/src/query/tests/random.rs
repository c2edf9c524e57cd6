//! Random expressions and rows.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::query::{Comparison, Condition, Expression, Field, Kind, Order, Pattern, Row, TextTest};

/// A random number generator (xorshift).
pub struct Random(pub u64);

const NUMBERS: [u64; 9] = [0, 1, 2, 3, 40, 1024, 1 << 20, 3 << 30, u64::MAX];

const TEXTS: [&str; 12] = [
    "",
    "a",
    "Shop::Order",
    "app/models/order.rb",
    "it's \"so\"",
    "\\ / \n \t \0 \u{1b} \u{7f}",
    "größe",
    "🍎🍎",
    "none",
    "and",
    "vm,end_proc",
    "vm, machine_context",
];

const PATTERNS: [&str; 8] = ["", "a", "^app/", r"\.rb$", r"\\", "r|S", "[^/]e", "(?s)o.*r"];

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 11) as usize % limit
    }

    fn chance(&mut self) -> bool {
        self.below(2) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn number(&mut self) -> u64 {
        match self.below(8) {
            0 => self.next(),
            _ => self.pick(&NUMBERS),
        }
    }

    fn text(&mut self, field: Field) -> String {
        match field.values() {
            Some(values) => self.pick(values).to_owned(),
            None => self.pick(&TEXTS).to_owned(),
        }
    }

    /// At most `depth` levels.
    pub fn expression(&mut self, depth: usize) -> Expression {
        match self.below(if depth == 0 { 1 } else { 5 }) {
            0 | 1 => Expression::Comparison(self.comparison()),
            2 => Expression::Not(Box::new(self.expression(depth - 1))),
            kind => {
                let length = 2 + self.below(3);
                let parts = (0..length).map(|_| self.expression(depth - 1)).collect();
                if kind == 3 { Expression::And(parts) } else { Expression::Or(parts) }
            }
        }
    }

    fn comparison(&mut self) -> Comparison {
        let field = self.pick(Field::ALL);
        let condition = match (self.below(8), field.kind()) {
            (0, _) => Condition::Known(self.chance()),
            (_, Kind::Bool) => Condition::Truth(self.chance()),
            (_, Kind::Text) => {
                Condition::Text { test: self.text_test(field), wanted: self.chance() }
            }
            (_, Kind::Number | Kind::Size | Kind::Address) => self.number_condition(),
        };
        Comparison { field, condition }
    }

    fn number_condition(&mut self) -> Condition {
        const ORDERS: [Order; 6] =
            [Order::Equal, Order::Unequal, Order::Less, Order::AtMost, Order::More, Order::AtLeast];
        let wanted = self.chance();
        match self.below(3) {
            0 => {
                let (one, other) = (self.number(), self.number());
                let (first, last) = (one.min(other), one.max(other));
                Condition::Range { first, last, wanted }
            }
            1 => {
                let length = 1 + self.below(4);
                let mut numbers: Vec<u64> = (0..length).map(|_| self.number()).collect();
                numbers.sort_unstable();
                numbers.dedup();
                Condition::Numbers { numbers, wanted }
            }
            _ => Condition::Number(self.pick(&ORDERS), self.number()),
        }
    }

    fn text_test(&mut self, field: Field) -> TextTest {
        match self.below(4) {
            0 => TextTest::Equal(self.text(field)),
            1 => {
                let length = 1 + self.below(4);
                let mut texts: Vec<String> = (0..length).map(|_| self.text(field)).collect();
                texts.sort_unstable();
                texts.dedup();
                TextTest::Among(texts)
            }
            2 if field == Field::Type => TextTest::Contains("STR".to_owned().into()),
            2 => TextTest::Contains(self.pick(&TEXTS).to_owned().into()),
            _ => {
                let ignore_case = field == Field::Type || self.chance();
                TextTest::Matches(Pattern::new(self.pick(&PATTERNS), ignore_case).unwrap())
            }
        }
    }

    /// An object with about half of its fields known.
    pub fn row(&mut self) -> Values {
        let mut values = Values::default();
        for field in Field::ALL {
            match (self.chance(), field.kind()) {
                (false, _) => {}
                (true, Kind::Bool) => drop(values.truths.insert(*field, self.chance())),
                (true, Kind::Text) => drop(values.texts.insert(*field, self.text(*field))),
                (true, _) => drop(values.numbers.insert(*field, self.number())),
            }
        }
        values
    }
}

/// An object.
#[derive(Clone, Debug, Default)]
pub struct Values {
    pub numbers: HashMap<Field, u64>,
    pub texts: HashMap<Field, String>,
    pub truths: HashMap<Field, bool>,
}

impl Row for Values {
    fn number(&self, field: Field) -> Option<u64> {
        assert!(!matches!(field.kind(), Kind::Bool | Kind::Text));
        self.numbers.get(&field).copied()
    }

    fn text(&self, field: Field) -> Option<Cow<'_, str>> {
        assert_eq!(field.kind(), Kind::Text);
        self.texts.get(&field).map(|text| text.as_str().into())
    }

    fn truth(&self, field: Field) -> Option<bool> {
        assert_eq!(field.kind(), Kind::Bool);
        self.truths.get(&field).copied()
    }

    /// Some fields are interned, some only in part.
    fn text_key(&self, field: Field) -> Option<u32> {
        assert_eq!(field.kind(), Kind::Text);
        let text = self.texts.get(&field)?;
        let known = field.values().unwrap_or(&TEXTS);
        let key = known.iter().position(|known| known == text)?;
        let key = u32::try_from(key).ok()?;
        match field {
            Field::Value => None,
            Field::Name => (key % 2 == 0).then_some(key),
            // Too large for a table.
            Field::Site => Some(u32::MAX - key),
            _ => Some(key * 700),
        }
    }
}
