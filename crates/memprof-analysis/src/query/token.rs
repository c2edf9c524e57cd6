//! The tokens of a query.

use super::number::{self, Number};
use super::query_error::Error;
use super::quoted;

/// A token of a query.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'q> {
    /// A field or an unquoted text, such as `Shop::Order`.
    Word(&'q str),
    Number(Number),
    Text(String),
    Regexp {
        source: String,
        ignore_case: bool,
    },
    Operator(Operator),
    And,
    Or,
    Not,
    In,
    Is,
    Open,
    Close,
    Comma,
    Dots,
    End,
}

/// The operator between a field and a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
    Matches,
    Differs,
    Contains,
}

/// Position of a token: its first byte and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub at: usize,
    pub length: usize,
}

impl Span {
    pub fn error(self, message: impl Into<String>) -> Error {
        Error { message: message.into(), at: self.at, length: self.length }
    }
}

/// Longer symbols before their prefixes.
const SYMBOLS: [(&str, Token<'static>); 17] = [
    ("&&", Token::And),
    ("||", Token::Or),
    ("==", Token::Operator(Operator::Equal)),
    ("=~", Token::Operator(Operator::Matches)),
    ("=", Token::Operator(Operator::Equal)),
    ("!=", Token::Operator(Operator::Unequal)),
    ("!~", Token::Operator(Operator::Differs)),
    ("!", Token::Not),
    ("<=", Token::Operator(Operator::AtMost)),
    ("<", Token::Operator(Operator::Less)),
    (">=", Token::Operator(Operator::AtLeast)),
    (">", Token::Operator(Operator::More)),
    ("~", Token::Operator(Operator::Contains)),
    ("..", Token::Dots),
    ("(", Token::Open),
    (")", Token::Close),
    (",", Token::Comma),
];

/// Splits a query into tokens.
pub(super) struct Lexer<'q> {
    query: &'q str,
    at: usize,
}

impl<'q> Lexer<'q> {
    pub fn new(query: &'q str) -> Lexer<'q> {
        Lexer { query, at: 0 }
    }

    /// The next token and its position; [`Token::End`] at the end.
    pub fn next(&mut self) -> Result<(Token<'q>, Span), Error> {
        let rest = self.query[self.at..].trim_start();
        let at = self.query.len() - rest.len();
        let (token, length) = match rest.chars().next() {
            None => {
                let at = self.query.trim_end().len();
                return Ok((Token::End, Span { at, length: 0 }));
            }
            Some('"' | '\'') => {
                let (text, length) = quoted::read_text(rest, at)?;
                (Token::Text(text), length)
            }
            Some('/') => {
                let (source, ignore_case, length) = quoted::read_regexp(rest, at)?;
                let regexp = Token::Regexp { source, ignore_case };
                (regexp, length)
            }
            Some(char) if char.is_ascii_digit() => {
                let (number, length) = number::read(self.query, at)?;
                (Token::Number(number), length)
            }
            Some(char) if is_word(char) => {
                let word = word(rest);
                (keyword(word).unwrap_or(Token::Word(word)), word.len())
            }
            Some(char) => symbol(rest, char, at)?,
        };
        self.at = at + length;
        Ok((token, Span { at, length }))
    }
}

fn symbol(rest: &str, char: char, at: usize) -> Result<(Token<'static>, usize), Error> {
    if rest.starts_with("...") {
        let span = Span { at, length: 3 };
        return Err(span.error("a range has two dots, and includes both ends"));
    }
    let mut symbols = SYMBOLS.iter();
    match symbols.find(|(symbol, _)| rest.starts_with(symbol)) {
        Some((symbol, token)) => Ok((token.clone(), symbol.len())),
        None => {
            let length = char.len_utf8();
            let message = match char {
                '&' => "write && or and".to_owned(),
                '|' => "write || or or".to_owned(),
                '-' => "numbers are not negative; a text with a - needs quotes".to_owned(),
                char => format!("{char:?} has no meaning here; a text needs quotes"),
            };
            Err(Span { at, length }.error(message))
        }
    }
}

/// A keyword in lower or upper case. In mixed case it may be the name of a class.
fn keyword(word: &str) -> Option<Token<'static>> {
    match word {
        "and" | "AND" => Some(Token::And),
        "or" | "OR" => Some(Token::Or),
        "not" | "NOT" => Some(Token::Not),
        "in" | "IN" => Some(Token::In),
        "is" | "IS" => Some(Token::Is),
        _ => None,
    }
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// The word at the beginning of the text, such as `retained` or `Shop::Order`.
fn word(text: &str) -> &str {
    let mut end = 0;
    loop {
        let rest = &text[end..];
        end += rest.find(|char| !is_word(char)).unwrap_or(rest.len());
        match text[end..].strip_prefix("::") {
            Some(rest) if rest.starts_with(is_word) => end += 2,
            _ => return &text[..end],
        }
    }
}

impl Operator {
    pub fn symbol(self) -> &'static str {
        match self {
            Operator::Equal => "=",
            Operator::Unequal => "!=",
            Operator::Less => "<",
            Operator::AtMost => "<=",
            Operator::More => ">",
            Operator::AtLeast => ">=",
            Operator::Matches => "=~",
            Operator::Differs => "!~",
            Operator::Contains => "~",
        }
    }
}
