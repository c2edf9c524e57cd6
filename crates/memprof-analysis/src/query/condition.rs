//! The conditions that may follow a field, by the field's type.

use super::expression::{Condition, Order, TextTest};
use super::field::{Field, Kind};
use super::nearest::nearest;
use super::parser::Parser;
use super::pattern::Pattern;
use super::query_error::{Error, shown};
use super::token::{Operator, Span, Token};

impl Parser<'_> {
    /// Parses the condition after the field at `span`.
    pub(super) fn condition(&mut self, field: Field, span: Span) -> Result<Condition, Error> {
        let begin = self.span;
        match self.token {
            Token::Operator(operator) => {
                check(field, operator, begin)?;
                self.advance()?;
                self.compared(field, operator)
            }
            Token::Is => {
                self.advance()?;
                let mut operator = Operator::Equal;
                if self.token == Token::Not {
                    self.advance()?;
                    operator = Operator::Unequal;
                }
                self.compared(field, operator)
            }
            Token::In => self.set(field, true),
            Token::Not => {
                self.advance()?;
                match self.token {
                    Token::In => self.set(field, false),
                    _ => Err(self.span.error("expected in")),
                }
            }
            _ if field.kind() == Kind::Bool => Ok(Condition::Truth(true)),
            _ => {
                let message = format!("{}: compare it, as {}", described(field), example(field));
                Err(span.error(message))
            }
        }
    }

    /// The value after an operator.
    fn compared(&mut self, field: Field, operator: Operator) -> Result<Condition, Error> {
        let wanted = !matches!(operator, Operator::Unequal | Operator::Differs);
        if self.token == Token::Word("none") {
            if !matches!(operator, Operator::Equal | Operator::Unequal) {
                return Err(self.span.error("none can be compared only with = and !="));
            }
            self.advance()?;
            return Ok(Condition::Known(!wanted));
        }
        match (field.kind(), operator) {
            (Kind::Bool, _) => self.truth(field).map(|truth| Condition::Truth(truth == wanted)),
            (Kind::Text, Operator::Matches | Operator::Differs) => {
                let test = self.pattern(field, operator)?;
                Ok(Condition::Text { test, wanted })
            }
            (Kind::Text, Operator::Contains) => {
                let test = TextTest::Contains(self.part(field)?.into());
                Ok(Condition::Text { test, wanted })
            }
            (Kind::Text, _) => {
                let test = TextTest::Equal(self.text(field)?);
                Ok(Condition::Text { test, wanted })
            }
            _ => Ok(Condition::Number(order(operator), self.number(field)?)),
        }
    }

    /// Parses the list or range after `in`.
    fn set(&mut self, field: Field, wanted: bool) -> Result<Condition, Error> {
        if field.kind() == Kind::Bool {
            let message = format!("{}: it is not asked with in", described(field));
            return Err(self.span.error(message));
        }
        self.advance()?;
        match (&self.token, field.kind()) {
            (Token::Open, Kind::Text) => {
                let mut texts = self.list(|parser| parser.text(field))?;
                texts.sort_unstable();
                texts.dedup();
                let test = TextTest::Among(texts);
                Ok(Condition::Text { test, wanted })
            }
            (Token::Open, _) => {
                let mut numbers = self.list(|parser| parser.number(field))?;
                numbers.sort_unstable();
                numbers.dedup();
                Ok(Condition::Numbers { numbers, wanted })
            }
            (Token::Number(_), Kind::Number | Kind::Size | Kind::Address) => {
                self.range(field, wanted)
            }
            (_, Kind::Text) => Err(self.span.error("expected a list, as (\"a\", \"b\")")),
            _ => Err(self.span.error("expected a list, as (1, 2), or a range, as 3..7")),
        }
    }

    fn list<T>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let begin = self.span;
        self.advance()?;
        let mut elements = vec![element(self)?];
        loop {
            match self.token {
                Token::Comma => {
                    self.advance()?;
                    elements.push(element(self)?);
                }
                Token::Close => {
                    self.advance()?;
                    return Ok(elements);
                }
                Token::End => return Err(begin.error("this parenthesis is not closed")),
                _ => return Err(self.span.error("expected , or )")),
            }
        }
    }

    fn range(&mut self, field: Field, wanted: bool) -> Result<Condition, Error> {
        let begin = self.span;
        let first = self.number(field)?;
        if self.token != Token::Dots {
            return Err(self.span.error("expected .. and the end of the range"));
        }
        self.advance()?;
        let end = self.span;
        let last = self.number(field)?;
        if last < first {
            let length = end.at + end.length - begin.at;
            let at = begin.at;
            return Err(Span { at, length }.error("the range ends before it begins"));
        }
        Ok(Condition::Range { first, last, wanted })
    }

    fn number(&mut self, field: Field) -> Result<u64, Error> {
        let Token::Number(number) = self.token else {
            let message =
                format!("{}: expected a number, as in {}", described(field), example(field));
            return Err(self.span.error(message));
        };
        if number.unit && !field.takes_unit() {
            let message = format!("{}: it has no unit of bytes", described(field));
            return Err(self.span.error(message));
        }
        self.advance()?;
        Ok(number.value)
    }

    fn truth(&mut self, field: Field) -> Result<bool, Error> {
        let truth = match self.token {
            Token::Word("true") => true,
            Token::Word("false") => false,
            _ => {
                let message = format!("{}: expected true, false or none", described(field));
                return Err(self.span.error(message));
            }
        };
        self.advance()?;
        Ok(truth)
    }

    /// A text to compare the field with.
    fn text(&mut self, field: Field) -> Result<String, Error> {
        let span = self.span;
        let text = self.part(field)?;
        let Some(known) = field.values() else {
            return Ok(text);
        };
        if known.contains(&text.as_str()) {
            return Ok(text);
        }
        let unknown = format!("unknown {} {}", field.name(), shown(&text));
        let message = match nearest(&text, known.iter().copied()) {
            Some(nearest) => format!("{unknown}; did you mean {nearest}?"),
            None => format!("{unknown}; expected one of: {}", known.join(", ")),
        };
        Err(span.error(message))
    }

    /// A text to search for.
    fn part(&mut self, field: Field) -> Result<String, Error> {
        let text = match &self.token {
            Token::Text(text) => text.clone(),
            Token::Word("none") => {
                let message = format!("write {} is none, or quotes for a text", field.name());
                return Err(self.span.error(message));
            }
            Token::Word(word) if field.values().is_none() && Field::parse(word).is_some() => {
                let message = "a field cannot be compared with a field; a text needs quotes here";
                return Err(self.span.error(message));
            }
            Token::Word(word) => (*word).to_owned(),
            Token::Regexp { .. } => {
                return Err(self.span.error("a regexp needs =~ or !~ before it"));
            }
            _ => {
                let name = field.name();
                let message =
                    format!("{}: expected quotes, as in {name} = \"...\"", described(field));
                return Err(self.span.error(message));
            }
        };
        self.advance()?;
        Ok(match field {
            Field::Type => type_name(&text),
            _ => text,
        })
    }

    /// Parses the pattern after `=~` or `!~`. The latter also negates `~`.
    fn pattern(&mut self, field: Field, operator: Operator) -> Result<TextTest, Error> {
        match &self.token {
            Token::Regexp { source, ignore_case } => {
                let ignore_case = *ignore_case || field == Field::Type;
                let pattern = Pattern::new(source, ignore_case);
                let pattern = pattern.map_err(|message| self.span.error(message))?;
                self.count_regexp()?;
                self.advance()?;
                Ok(TextTest::Matches(pattern))
            }
            Token::Text(_) | Token::Word(_) if operator == Operator::Differs => {
                let part = self.part(field)?;
                Ok(TextTest::Contains(part.into()))
            }
            Token::Text(_) | Token::Word(_) => {
                let message = "=~ needs a regexp, as /.../; ~ asks for a text that is contained";
                Err(self.span.error(message))
            }
            _ => Err(self.span.error("expected a regexp, as /.../")),
        }
    }
}

/// Checks that fields of this type support the operator.
fn check(field: Field, operator: Operator, span: Span) -> Result<(), Error> {
    let known: &[Operator] = match field.kind() {
        Kind::Bool => &[Operator::Equal, Operator::Unequal],
        Kind::Text => &[
            Operator::Equal,
            Operator::Unequal,
            Operator::Contains,
            Operator::Matches,
            Operator::Differs,
        ],
        Kind::Number | Kind::Size | Kind::Address => &[
            Operator::Equal,
            Operator::Unequal,
            Operator::Less,
            Operator::AtMost,
            Operator::More,
            Operator::AtLeast,
        ],
    };
    if known.contains(&operator) {
        return Ok(());
    }
    let known: Vec<&str> = known.iter().map(|operator| operator.symbol()).collect();
    let message = format!(
        "{}: it can be compared with {}, not with {}",
        described(field),
        known.join(" "),
        operator.symbol()
    );
    Err(span.error(message))
}

fn order(operator: Operator) -> Order {
    match operator {
        Operator::Unequal => Order::Unequal,
        Operator::Less => Order::Less,
        Operator::AtMost => Order::AtMost,
        Operator::More => Order::More,
        Operator::AtLeast => Order::AtLeast,
        _ => Order::Equal,
    }
}

/// As in "class is a text".
fn described(field: Field) -> String {
    let kind = match field.kind() {
        Kind::Number => "a number",
        Kind::Size => "a size",
        Kind::Text => "a text",
        Kind::Bool => "true or false",
        Kind::Address => "an address",
    };
    format!("{} is {kind}", field.name())
}

/// An example comparison of the field.
fn example(field: Field) -> String {
    let value = match field.kind() {
        Kind::Number => "> 10",
        Kind::Size => "> 1MiB",
        Kind::Text => "= \"...\"",
        Kind::Bool => "= true",
        Kind::Address => "= 0x7f00",
    };
    format!("{} {value}", field.name())
}

/// The name as in dumps: `STRING` for `string` and `T_STRING`.
fn type_name(text: &str) -> String {
    let name = text.to_ascii_uppercase();
    match name.strip_prefix("T_") {
        Some(name) => name.to_owned(),
        None => name,
    }
}
