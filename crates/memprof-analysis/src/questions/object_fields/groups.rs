//! Evaluates a query for whole groups and sites, before any object is looked at.

use std::borrow::Cow;

use memprof_paths::guess_gem;

use super::super::application;
use super::super::words::place;
use super::Columns;
use crate::query::{Expression, Field, Row};
use memprof_dump::record::Kind;
use memprof_heap::{Heap, Site};

/// The common properties of a group, as a query sees them: type, class, and the kind of imemo.
struct OfGroup<'c, 'h> {
    columns: &'c Columns<'h>,
    number: usize,
}

/// A site, or none, as a query sees it.
struct OfSite<'h> {
    heap: &'h Heap,
    site: Option<&'h Site>,
}

impl Columns<'_> {
    /// Whether objects of each group can match, if the query has conditions on groups: most queries begin with a type or
    /// a class, which few groups have.
    pub fn possible_groups(&self, expression: &Expression) -> Option<Vec<bool>> {
        let parts = parts_about(expression, &[Field::Type, Field::Class, Field::Imemo])?;
        let possible = |number| {
            let group = OfGroup {
                columns: self,
                number,
            };
            parts.iter().all(|part| part.matches(&group))
        };
        Some((0..self.types.len()).map(possible).collect())
    }

    /// The same for each site and, as the last entry, for objects whose site is unknown.
    pub fn possible_sites(&self, expression: &Expression) -> Option<Vec<bool>> {
        use Field::{Application, File, Gem, Line, Method, Site, Tracked};
        let parts = parts_about(
            expression,
            &[File, Line, Site, Method, Gem, Application, Tracked],
        )?;
        let sites = self.heap.sites().iter().map(Some).chain([None]);
        let possible = sites.map(|site| {
            let site = OfSite {
                heap: self.heap,
                site,
            };
            parts.iter().all(|part| part.matches(&site))
        });
        Some(possible.collect())
    }
}

/// The required parts of a query that only use these fields, if there are any.
fn parts_about<'e>(expression: &'e Expression, fields: &[Field]) -> Option<Vec<&'e Expression>> {
    let parts = match expression {
        Expression::And(parts) => parts.as_slice(),
        one => std::slice::from_ref(one),
    };
    let about = |part: &&Expression| part.fields().iter().all(|field| fields.contains(&field));
    let parts: Vec<&Expression> = parts.iter().filter(about).collect();
    (!parts.is_empty()).then_some(parts)
}

impl Row for OfSite<'_> {
    fn number(&self, field: Field) -> Option<u64> {
        let line = self.site.filter(|_| field == Field::Line)?.line;
        (line != 0).then_some(u64::from(line))
    }

    fn text(&self, field: Field) -> Option<Cow<'_, str>> {
        text_of(self.heap, self.site?, field)
    }

    fn truth(&self, field: Field) -> Option<bool> {
        (field == Field::Tracked).then_some(self.site.is_some())
    }
}

/// The value of a field for a site.
pub(super) fn text_of<'h>(heap: &'h Heap, site: &Site, field: Field) -> Option<Cow<'h, str>> {
    let file = heap.name(site.file);
    Some(match field {
        Field::File => file.into(),
        Field::Site => place(file, site.line).into(),
        Field::Gem => guess_gem(file).into(),
        Field::Method => heap.name(site.method?).into(),
        Field::Application => {
            let own = application(heap, site)?;
            place(heap.name(own.file), own.line).into()
        }
        _ => return None,
    })
}

impl Row for OfGroup<'_, '_> {
    fn number(&self, _: Field) -> Option<u64> {
        None
    }

    fn text(&self, field: Field) -> Option<Cow<'_, str>> {
        let heap = self.columns.heap;
        let group = heap.groups().get(self.number)?;
        let name = match field {
            Field::Type => return Some(self.columns.types.get(self.number)?.into()),
            Field::Class => heap.classes().get(group.shown as usize)?.name,
            Field::Imemo => group.name.filter(|_| group.kind == Kind::IMEMO)?,
            _ => return None,
        };
        Some(heap.name(name).into())
    }

    fn truth(&self, _: Field) -> Option<bool> {
        None
    }
}
