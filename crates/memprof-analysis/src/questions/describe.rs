//! An object, as answers describe it.

use std::io;

use serde::Serialize;

use super::tally::percent;
use super::words::Words;
use memprof_heap::{Heap, NONE, Sizes};

/// Where an object was allocated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Site {
    /// Path.
    pub file: String,
    /// Line; 0 if unknown.
    pub line: u32,
    /// Method.
    pub method: Option<String>,
    /// The innermost application line on the stack, if the site is in a library and the line is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<Box<Site>>,
}

impl Site {
    /// File, line and method.
    pub fn of(heap: &Heap, site: &memprof_heap::Site) -> Site {
        Site {
            file: heap.name(site.file).to_owned(),
            line: site.line,
            method: site.method.map(|name| heap.name(name).to_owned()),
            caller: None,
        }
    }
}

/// An object in a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Described {
    /// Number.
    pub id: u32,
    /// Address, such as `0x7f12a0`; `None` for a root.
    pub address: Option<String>,
    /// Type, such as `string`; `root`.
    pub r#type: &'static str,
    /// Class or a substitute.
    pub class: String,
    /// In words.
    pub text: String,
    /// Memsize in bytes.
    pub size: u64,
    /// Retained size in bytes.
    pub retained: u64,
    /// Retained size as a percentage of the whole heap's memsize, including garbage, as in all answers.
    pub percent: f64,
    /// Where it was allocated.
    pub site: Option<Site>,
    /// Number of GC runs before it was allocated.
    pub generation: Option<u32>,
}

/// Describes objects.
pub struct Describer<'h> {
    heap: &'h Heap,
    /// Words for the same heap.
    pub words: Words<'h>,
    memsizes: &'h Sizes,
    retained: &'h Sizes,
    sites: &'h [u32],
    generations: &'h [u32],
    whole: u64,
}

impl<'h> Describer<'h> {
    /// Loads the required columns.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn new(heap: &'h Heap) -> io::Result<Describer<'h>> {
        let retained = heap.retained()?;
        Ok(Describer {
            heap,
            words: Words::new(heap)?,
            memsizes: heap.memsizes()?,
            retained,
            sites: heap.site_numbers()?,
            generations: heap.generations()?,
            whole: heap.size()?,
        })
    }

    /// Where an object was allocated.
    pub fn site(&self, node: u32) -> Option<Site> {
        self.site_of(*self.sites.get(node as usize)?)
    }

    /// The site with a number.
    pub fn site_of(&self, number: u32) -> Option<Site> {
        let site = self.heap.sites().get(number as usize)?;
        let caller = self.heap.caller(site);
        Some(Site {
            caller: caller.map(|caller| Box::new(Site::of(self.heap, caller))),
            ..Site::of(self.heap, site)
        })
    }

    /// Shallow size of an object.
    pub fn size(&self, node: u32) -> u64 {
        self.memsizes.get(node)
    }

    /// The percentage of the whole heap's memsize.
    pub fn percent(&self, size: u64) -> f64 {
        percent(size, self.whole)
    }

    /// Number of GC runs before an object was allocated.
    pub fn generation(&self, node: u32) -> Option<u32> {
        self.generations.get(node as usize).copied().filter(|&generation| generation != NONE)
    }

    /// An object or a root.
    pub fn describe(&self, node: u32) -> Described {
        let retained = self.retained.get(node);
        Described {
            id: node,
            address: (node < self.heap.len())
                .then(|| format!("{:#x}", self.heap.addresses().of(node))),
            r#type: self.words.type_name(node),
            class: self.words.class(node).to_owned(),
            text: self.words.object(node),
            size: self.memsizes.get(node),
            retained,
            percent: self.percent(retained),
            site: self.site(node),
            generation: self.generation(node),
        }
    }
}

/// An object in a question, by number or by address, as `"0x7f12a0"`.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(untagged)]
pub enum Named {
    /// By number.
    Id(u32),
    /// By address.
    Address(String),
}

impl Named {
    /// The node.
    ///
    /// # Errors
    /// If the heap has no such object.
    pub fn find(&self, heap: &Heap) -> Result<u32, super::Error> {
        match self {
            Named::Id(id) if *id <= heap.root() => Ok(*id),
            Named::Id(id) => Err(super::Error::Question(format!("no object has the number {id}"))),
            Named::Address(text) => {
                let digits = text.strip_prefix("0x").unwrap_or(text);
                let address = u64::from_str_radix(digits, 16).ok();
                address.and_then(|address| heap.at(address)).ok_or_else(|| {
                    super::Error::Question(format!("no object has the address {text}"))
                })
            }
        }
    }
}
