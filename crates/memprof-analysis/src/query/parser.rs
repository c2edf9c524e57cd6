//! The grammar, except for comparisons: see [`condition`](super::condition).

use super::expression::{Comparison, Expression};
use super::field::Field;
use super::query_error::{Error, shown};
use super::token::{Lexer, Span, Token};

/// Maximum nesting of parentheses and negations.
const DEEPEST: usize = 100;

/// Maximum number of regexps per query; each may take some megabytes.
const MOST_REGEXPS: usize = 32;

pub(super) struct Parser<'q> {
    lexer: Lexer<'q>,
    /// The next token.
    pub token: Token<'q>,
    /// Its position.
    pub span: Span,
    depth: usize,
    regexps: usize,
}

/// Parses a query.
pub(super) fn parse(query: &str) -> Result<Expression, Error> {
    let mut lexer = Lexer::new(query);
    let (token, span) = lexer.next()?;
    let mut parser = Parser { lexer, token, span, depth: 0, regexps: 0 };
    let expression = parser.alternatives()?;
    match parser.token {
        Token::End => Ok(expression),
        Token::Close => Err(parser.span.error("no parenthesis is open here")),
        _ => Err(parser.span.error("expected and, or, or the end")),
    }
}

impl<'q> Parser<'q> {
    /// Advances to the next token; returns the previous one.
    pub fn advance(&mut self) -> Result<Token<'q>, Error> {
        let (token, span) = self.lexer.next()?;
        self.span = span;
        Ok(std::mem::replace(&mut self.token, token))
    }

    /// Counts a regexp.
    pub fn count_regexp(&mut self) -> Result<(), Error> {
        self.regexps += 1;
        if self.regexps > MOST_REGEXPS {
            let message = format!("more than {MOST_REGEXPS} regexps; join them as /one|other/");
            return Err(self.span.error(message));
        }
        Ok(())
    }

    /// a or b or c
    fn alternatives(&mut self) -> Result<Expression, Error> {
        let first = self.conjunction()?;
        if self.token != Token::Or {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.token == Token::Or {
            self.advance()?;
            parts.push(self.conjunction()?);
        }
        Ok(Expression::Or(parts))
    }

    /// a and b and c
    fn conjunction(&mut self) -> Result<Expression, Error> {
        let first = self.factor()?;
        if self.token != Token::And {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.token == Token::And {
            self.advance()?;
            parts.push(self.factor()?);
        }
        Ok(Expression::And(parts))
    }

    /// not a, (a), or a comparison
    fn factor(&mut self) -> Result<Expression, Error> {
        let begin = self.span;
        match self.token {
            Token::Not => {
                self.descend()?;
                let inner = self.factor()?;
                self.depth -= 1;
                Ok(Expression::Not(Box::new(inner)))
            }
            Token::Open => {
                self.descend()?;
                let inner = self.alternatives()?;
                match self.token {
                    Token::Close => self.advance()?,
                    Token::End => return Err(begin.error("this parenthesis is not closed")),
                    _ => return Err(self.span.error("expected and, or, or )")),
                };
                self.depth -= 1;
                Ok(inner)
            }
            Token::Word(name) => self.comparison(name),
            Token::End if begin.at == 0 => Err(begin.error("the query is empty")),
            _ => Err(begin.error("expected a field, as class or retained")),
        }
    }

    fn descend(&mut self) -> Result<(), Error> {
        if self.depth == DEEPEST {
            let message = format!("more than {DEEPEST} levels of parentheses and negations");
            return Err(self.span.error(message));
        }
        self.depth += 1;
        self.advance().map(drop)
    }

    fn comparison(&mut self, name: &str) -> Result<Expression, Error> {
        let span = self.span;
        let field = Field::parse(name).ok_or_else(|| span.error(unknown(name)))?;
        self.advance()?;
        let condition = self.condition(field, span)?;
        Ok(Expression::Comparison(Comparison { field, condition }))
    }
}

fn unknown(name: &str) -> String {
    let unknown = format!("unknown field {}", shown(name));
    match Field::nearest(name) {
        Some(nearest) => format!("{unknown}; did you mean {nearest}?"),
        None => unknown,
    }
}
