//! Rules that extend a set along references, as chap's `/extend`: `[MEMBER][@OFFSET]->[EXTENSION][@OFFSET][=>STATE]`.

use std::collections::BTreeSet;

use memprof_heap::graph::{BitSet, Inbound};
use serde::Deserialize;

use super::reference_limits::has;
use super::related::references_at;
use crate::analysis::Analysis;
use crate::sets::SetName;

/// A rule that adds blocks for members of the set.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Rule {
    /// The rule as given.
    pub text: String,
    /// The members that it applies to: by signature, or by the state in which they were reached.
    member: Constraint,
    direction: Direction,
    extension: Constraint,
    /// The state of the added blocks.
    state: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Constraint {
    name: Option<String>,
    /// The place of the reference in the referencing block; the place it points to in the referenced one.
    offset: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    /// `->`: used blocks that the member references.
    Outgoing,
    /// `~>`: the leaked ones among them.
    Leaked,
    /// `<-`: blocks that reference the member.
    Incoming,
}

const DIRECTIONS: [(&str, Direction); 3] =
    [("->", Direction::Outgoing), ("~>", Direction::Leaked), ("<-", Direction::Incoming)];

/// The signatures named by rules: every name that is not a state of one of them.
pub fn signatures(rules: &[Rule]) -> impl Iterator<Item = &str> {
    let is_state = |name: &str| (rules.iter()).any(|rule| rule.state.as_deref() == Some(name));
    let members = rules.iter().filter_map(|rule| rule.member.name.as_deref());
    let extensions = (rules.iter()).filter_map(|rule| rule.extension.name.as_deref());
    members.filter(move |name| !is_state(name)).chain(extensions)
}

impl TryFrom<String> for Rule {
    type Error = String;

    fn try_from(text: String) -> Result<Rule, String> {
        let invalid = || {
            format!(
                "invalid /extend \"{text}\"; expected [MEMBER][@OFFSET], then one of ->, ~>, <-, then [EXTENSION][@OFFSET][=>STATE]"
            )
        };
        let places = DIRECTIONS.iter();
        let places = places.filter_map(|(sign, direction)| Some((text.find(sign)?, *direction)));
        let (place, direction) = places.min_by_key(|(place, _)| *place).ok_or_else(invalid)?;
        let (extension, state) = match text[place + 2..].split_once("=>") {
            Some((_, "")) => return Err(invalid()),
            Some((extension, state)) => (extension, Some(state.to_owned())),
            None => (&text[place + 2..], None),
        };
        Ok(Rule {
            member: Constraint::parse(&text[..place]).ok_or_else(invalid)?,
            direction,
            extension: Constraint::parse(extension).ok_or_else(invalid)?,
            state,
            text,
        })
    }
}

impl Constraint {
    fn parse(text: &str) -> Option<Constraint> {
        let (name, offset) = match text.split_once('@') {
            Some((name, offset)) => {
                let digits = offset.strip_prefix("0x").unwrap_or(offset);
                (name, Some(u64::from_str_radix(digits, 16).ok()?))
            }
            None => (text, None),
        };
        Some(Constraint { name: (!name.is_empty()).then(|| name.to_owned()), offset })
    }
}

/// The blocks of a set and those added by rules, in the order in which they are reached, depth first.
#[derive(Debug, Default)]
pub struct Extension {
    /// The blocks, by number.
    pub reached: Vec<u32>,
    /// The origin of each added block, by place; empty unless comments are requested.
    added: Vec<Option<Origin>>,
    /// References to blocks already reached: the place before, the origin, and the block.
    again: Vec<(u32, Origin, u32)>,
}

/// The rule and the member that led to a block.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// The index of the rule among those of the set.
    pub rule: u32,
    /// The member that it was applied to.
    pub member: u32,
}

impl Extension {
    /// The origin of the block at a place; None for a block of the set itself.
    pub fn origin(&self, place: u32) -> Option<Origin> {
        self.added.get(place as usize).copied().flatten()
    }

    /// References to blocks already reached, between the block at a place and the next one.
    pub fn again(&self, place: u32) -> impl Iterator<Item = (Origin, u32)> {
        let first = self.again.partition_point(|(at, ..)| *at < place);
        let rest = self.again[first..].iter();
        let here = rest.take_while(move |(at, ..)| *at == place);
        here.map(|(_, origin, block)| (*origin, *block))
    }
}

/// Applies rules to the blocks of a set.
pub fn extended(analysis: &Analysis, base: &[u32], rules: &[Rule], comment: bool) -> Extension {
    let mut walk = Walk::new(analysis, rules, comment);
    for member in base {
        walk.visit(*member);
    }
    walk.extension
}

/// A block to which rules are being applied.
struct Step<'r> {
    member: u32,
    state: Option<&'r str>,
    /// The remaining rules.
    rules: &'r [Rule],
    /// The blocks that the last rule adds, in reverse order.
    candidates: Vec<u32>,
    /// The index of that rule.
    rule: u32,
    /// The state of the added blocks.
    next_state: Option<&'r str>,
}

struct Walk<'a, 'r> {
    analysis: &'a Analysis,
    rules: &'r [Rule],
    inbound: Option<Inbound>,
    visited: BitSet,
    comment: bool,
    extension: Extension,
}

impl<'a, 'r> Walk<'a, 'r> {
    fn new(analysis: &'a Analysis, rules: &'r [Rule], comment: bool) -> Walk<'a, 'r> {
        let is_incoming = |rule: &Rule| rule.direction == Direction::Incoming;
        Walk {
            analysis,
            rules,
            inbound: (rules.iter().any(is_incoming))
                .then(|| Inbound::of(&analysis.references().graph())),
            visited: BitSet::new(analysis.heap.blocks.len()),
            comment,
            extension: Extension::default(),
        }
    }

    fn visit(&mut self, member: u32) {
        let mut steps = Vec::new();
        steps.extend(self.reach(member, None, None));
        while let Some(step) = steps.last_mut() {
            if let Some(candidate) = step.candidates.pop() {
                let state = step.next_state;
                let origin = Origin { rule: step.rule, member: step.member };
                steps.extend(self.reach(candidate, state, Some(origin)));
            } else if let Some((rule, rest)) = step.rules.split_first() {
                step.rule = (self.rules.len() - step.rules.len()) as u32;
                step.rules = rest;
                step.next_state = rule.state.as_deref();
                step.candidates = self.candidates(rule, step.member, step.state);
            } else {
                steps.pop();
            }
        }
    }

    /// Adds a block unless it was already reached.
    fn reach(
        &mut self,
        member: u32,
        state: Option<&'r str>,
        origin: Option<Origin>,
    ) -> Option<Step<'r>> {
        let Extension { reached, added, again } = &mut self.extension;
        if !self.visited.insert(member) {
            if let Some(origin) = origin.filter(|_| self.comment) {
                again.push(((reached.len() - 1) as u32, origin, member));
            }
            return None;
        }
        reached.push(member);
        if self.comment {
            added.push(origin);
        }
        Some(Step {
            member,
            state,
            rules: self.rules,
            candidates: Vec::new(),
            rule: 0,
            next_state: None,
        })
    }

    /// The blocks that a rule adds to a member, in reverse order.
    fn candidates(&self, rule: &Rule, member: u32, state: Option<&str>) -> Vec<u32> {
        if !self.is_for(rule, member, state) {
            return Vec::new();
        }
        let set = match rule.direction {
            Direction::Leaked => SetName::Leaked,
            Direction::Outgoing | Direction::Incoming => SetName::Used,
        };
        let mut found: Vec<u32> = match (rule.direction, &self.inbound) {
            (Direction::Incoming, Some(inbound)) => inbound.edges(member).collect(),
            _ => self.analysis.references().graph().edges(member).collect(),
        };
        let mut seen = BTreeSet::new();
        found.retain(|candidate| {
            let [source, target] = match rule.direction {
                Direction::Incoming => {
                    [(*candidate, rule.extension.offset), (member, rule.member.offset)]
                }
                _ => [(member, rule.member.offset), (*candidate, rule.extension.offset)],
            };
            self.analysis.contains(set, *candidate)
                && (self.comment || !self.visited.contains(*candidate))
                && (rule.extension.name.as_deref())
                    .is_none_or(|wanted| has(self.analysis, *candidate, wanted))
                && references_at(self.analysis, source, target)
                // Comments are about blocks reached before, not about second references.
                && (!self.comment || seen.insert(*candidate))
        });
        found.reverse();
        found
    }

    /// A rule that begins with a state applies to members in that state; any other one to those without a state.
    fn is_for(&self, rule: &Rule, member: u32, state: Option<&str>) -> bool {
        let Some(name) = rule.member.name.as_deref() else {
            return state.is_none();
        };
        let is_state = (self.rules.iter()).any(|rule| rule.state.as_deref() == Some(name));
        match state {
            _ if is_state => state == Some(name),
            None => has(self.analysis, member, name),
            Some(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Constraint, Direction, Rule};

    fn rule(text: &str) -> Result<Rule, String> {
        Rule::try_from(text.to_owned())
    }

    fn constraint(name: &str, offset: Option<u64>) -> Constraint {
        Constraint { name: (!name.is_empty()).then(|| name.to_owned()), offset }
    }

    #[test]
    fn rules_are_read_as_chap_reads_them() {
        let read = |text| {
            let rule = rule(text).expect(text);
            (rule.member, rule.direction, rule.extension, rule.state)
        };
        let none = || constraint("", None);
        use Direction::{Incoming, Leaked, Outgoing};
        assert_eq!(read("->"), (none(), Outgoing, none(), None));
        assert_eq!(read("~>"), (none(), Leaked, none(), None));
        assert_eq!(
            read("-->%COWStringBody"),
            (constraint("-", None), Outgoing, constraint("%COWStringBody", None), None)
        );
        assert_eq!(
            read("Foo@0x40->%VectorBody@18=>Out1"),
            (
                constraint("Foo", Some(0x40)),
                Outgoing,
                constraint("%VectorBody", Some(0x18)),
                Some("Out1".to_owned())
            )
        );
        assert_eq!(read("%SSL_CTX@0<-"), (constraint("%SSL_CTX", Some(0)), Incoming, none(), None));
        assert_eq!(read("->=>Out1"), (none(), Outgoing, none(), Some("Out1".to_owned())));
        assert_eq!(read("Foo->-").2, constraint("-", None));
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for text in ["", "Foo", "->@zz", "Foo@->", "->=>"] {
            let error = rule(text).expect_err(text);
            assert!(error.starts_with(&format!("invalid /extend \"{text}\"; expected")), "{error}");
        }
    }
}
