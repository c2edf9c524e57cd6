//! Texts and sites that records refer to by number.

use std::hash::{BuildHasher, Hash};

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::record::{NameId, Site, SiteId};
use super::text;

/// Initial number of slots in the table of texts; a power of two.
const PLACES: usize = 1024;

/// Interned texts and sites. Only grows, so a number keeps its meaning through a whole dump.
#[derive(Debug)]
pub struct Tables {
    /// All texts, concatenated: a heap has a hundred thousand, each too short for an allocation of its own.
    texts: String,
    spans: Vec<Span>,
    /// Open addressing: part of the hash, and the number; [`FREE`] marks a free slot.
    places: Vec<(u32, u32)>,
    sites: Vec<Site>,
    by_site: FxHashMap<Site, SiteId>,
}

const FREE: u32 = u32::MAX;

/// Position of a text, and whether it needs no JSON escapes: names repeat too often to check that each time.
#[derive(Debug)]
struct Span {
    start: usize,
    end: usize,
    plain: bool,
}

impl Default for Tables {
    fn default() -> Tables {
        Tables {
            texts: String::new(),
            spans: Vec::new(),
            places: vec![(0, FREE); PLACES],
            sites: Vec::new(),
            by_site: FxHashMap::default(),
        }
    }
}

impl Tables {
    /// The number of a text.
    pub fn intern(&mut self, text: &str) -> NameId {
        let hash = (hash(text) >> 32) as u32;
        let place = match self.find(hash, text) {
            Ok(id) => return id,
            Err(place) => place,
        };
        let id = NameId(self.spans.len() as u32);
        let start = self.texts.len();
        self.texts.push_str(text);
        self.spans.push(Span { start, end: self.texts.len(), plain: text::is_plain(text) });
        self.places[place] = (hash, id.0);
        if self.spans.len() * 2 > self.places.len() {
            self.grow();
        }
        id
    }

    /// The number of a text, or the slot for it.
    fn find(&self, hash: u32, text: &str) -> Result<NameId, usize> {
        let mask = self.places.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            match self.places[place] {
                (_, FREE) => return Err(place),
                (known, id) if known == hash && self.name(NameId(id)) == text => {
                    return Ok(NameId(id));
                }
                _ => place = (place + 1) & mask,
            }
        }
    }

    fn grow(&mut self) {
        let mask = self.places.len() * 4 - 1;
        let mut places = vec![(0, FREE); mask + 1];
        for entry in self.places.iter().filter(|entry| entry.1 != FREE) {
            let mut place = entry.0 as usize & mask;
            while places[place].1 != FREE {
                place = (place + 1) & mask;
            }
            places[place] = *entry;
        }
        self.places = places;
    }

    /// The number of a text that is already interned.
    pub fn find_name(&self, text: &str) -> Option<NameId> {
        self.find((hash(text) >> 32) as u32, text).ok()
    }

    /// Number of texts.
    pub fn names(&self) -> usize {
        self.spans.len()
    }

    /// The text with a number; empty for an unknown one.
    #[inline]
    pub fn name(&self, id: NameId) -> &str {
        self.spelled(id).0
    }

    /// The text, and whether it needs no escapes inside a JSON string.
    #[inline]
    pub(super) fn spelled(&self, id: NameId) -> (&str, bool) {
        let Some(span) = self.spans.get(id.0 as usize) else {
            return ("", true);
        };
        let text = self.texts.get(span.start..span.end).unwrap_or("");
        (text, span.plain)
    }

    /// The number of a site.
    pub fn intern_site(&mut self, site: Site) -> SiteId {
        if let Some(id) = self.by_site.get(&site) {
            return *id;
        }
        let id = SiteId(self.sites.len() as u32);
        self.sites.push(site);
        self.by_site.insert(site, id);
        id
    }

    /// The site with a number; `None` for an unknown one.
    #[inline]
    pub fn site(&self, id: SiteId) -> Option<Site> {
        self.sites.get(id.0 as usize).copied()
    }
}

fn hash(text: impl Hash) -> u64 {
    FxBuildHasher.hash_one(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_each_text_one_number() {
        let mut tables = Tables::default();
        let texts: Vec<String> = (0..5000).map(|number| format!("@name{number}")).collect();
        let ids: Vec<NameId> = texts.iter().map(|text| tables.intern(text)).collect();
        for (text, id) in texts.iter().zip(&ids) {
            assert_eq!(tables.intern(text), *id);
            assert_eq!(tables.name(*id), text);
        }
        assert_eq!(tables.intern(""), NameId(5000));
        assert_eq!(tables.name(NameId(5001)), "");
    }
}
