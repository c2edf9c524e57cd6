//! Facts that all formats of JSON lines have under the same keys.

use super::super::record::{Allocation, Flags, NameId, Site, Tables};
use super::Fallible;
use super::json::Object as Json;

/// Flags of the collector, as they are below the key `flags`.
const COLLECTOR: [(Flags, &str); 9] = [
    (Flags::WB_PROTECTED, "wb_protected"),
    (Flags::OLD, "old"),
    (Flags::UNCOLLECTIBLE, "uncollectible"),
    (Flags::MARKING, "marking"),
    (Flags::MARKED, "marked"),
    (Flags::PINNED, "pinned"),
    (Flags::REMEMBERED, "remembered"),
    (Flags::SHAREABLE, "shareable"),
    (Flags::FINALIZE, "finalize"),
];

/// The text of a key, interned.
pub(super) fn name(json: &Json<'_>, tables: &mut Tables, key: &str) -> Fallible<Option<NameId>> {
    let text = json.text(key)?;
    Ok(text.map(|text| tables.intern(&text)))
}

/// Adds the flags of the collector.
pub(super) fn collector(json: &Json<'_>, flags: &mut Flags) {
    for (flag, key) in COLLECTOR {
        flags.set(flag, json.is_true(key));
    }
}

/// Where an object was made, if it was tracked.
pub(super) fn allocation(json: &Json<'_>, tables: &mut Tables) -> Fallible<Option<Allocation>> {
    let Some(generation) = json.number("generation")? else {
        return Ok(None);
    };
    let site = Site {
        file: tables.intern(&json.text("file")?.unwrap_or_default()),
        line: json.number("line")?.unwrap_or(0),
        method: name(json, tables, "method")?,
    };
    Ok(Some(Allocation {
        site: tables.intern_site(site),
        generation,
        time: json.number("time")?.unwrap_or(0),
    }))
}
