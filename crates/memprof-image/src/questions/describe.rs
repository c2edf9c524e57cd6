//! Describes the memory at an address.

use serde::{Deserialize, Serialize};

use super::Address;
use super::allocated::Allocated;
use super::selection::slot;
use super::signature::Signature;
use crate::analysis::Analysis;
use crate::blocks::Kind;
use crate::memory_map::Anchor;
use crate::sets::SetName;

/// The address.
#[derive(Deserialize)]
pub struct Question {
    address: Address,
}

/// The description.
#[derive(Serialize)]
pub struct Answer {
    address: Address,
    #[serde(flatten)]
    place: Place,
    /// The file mapped there, with the offset.
    file: Option<String>,
}

/// A place.
#[derive(Debug, Serialize)]
#[serde(tag = "place", rename_all = "snake_case")]
pub(crate) enum Place {
    /// A malloc block.
    Block {
        /// The address of its beginning.
        start: Address,
        size: u64,
        kind: Kind,
        signature: Option<String>,
        /// The C++ class whose objects have this signature.
        #[serde(skip_serializing_if = "Option::is_none")]
        class: Option<String>,
        /// For used blocks: `anchored`, `garbage`, `leaked` or `unreferenced`.
        state: Option<&'static str>,
        /// The Ruby object that owns it.
        owner: Option<Object>,
        #[serde(flatten)]
        allocated: Allocated,
    },
    /// A Ruby object.
    Object {
        #[serde(flatten)]
        object: Object,
        anchored: bool,
    },
    /// A page of Ruby's heap, outside of objects.
    RubyPage { start: Address },
    /// The stack of a thread.
    Stack { thread: u32 },
    /// A variable of a library or the program.
    Static,
    /// Writable memory outside of malloc and Ruby's heap.
    External,
    /// Read-only memory.
    Constant,
    /// Unmapped memory.
    Unmapped,
}

/// A Ruby object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Object {
    pub object: Address,
    pub r#type: &'static str,
    /// Its class; not for VM-internal objects.
    #[serde(skip_serializing_if = "Option::is_none", rename = "of_class")]
    pub class: Option<String>,
}

impl Object {
    pub fn at(analysis: &Analysis, address: u64) -> Option<Object> {
        Some(Object {
            object: Address(address),
            r#type: analysis.object_type(address)?.name(),
            class: analysis.class_of(address).map(str::to_owned),
        })
    }
}

impl Question {
    pub(crate) fn of(address: Address) -> Question {
        Question { address }
    }

    /// Looks it up.
    pub fn answer(&self, analysis: &Analysis) -> Result<Answer, String> {
        let Address(address) = self.address;
        Ok(Answer {
            address: self.address,
            place: place(analysis, address),
            file: analysis.in_file(address),
        })
    }
}

/// The place at an address.
pub(crate) fn place(analysis: &Analysis, address: u64) -> Place {
    if let Some(number) = analysis.heap.blocks.containing(address) {
        return block(analysis, number);
    }
    if let Some(page) = analysis.ruby.containing(address) {
        let object = analysis.object_around(address);
        let start = object.and_then(|node| slot(analysis, node));
        return match start.and_then(|start| Object::at(analysis, start)) {
            Some(object) => {
                Place::Object { object, anchored: object_is_anchored(analysis, address) }
            }
            None => Place::RubyPage { start: Address(analysis.ruby.pages[page].address) },
        };
    }
    match analysis.map.anchor_at(address) {
        Some(Anchor::Stack) => {
            let stack = analysis.map.stacks.iter().position(|stack| stack.contains(&address));
            let thread = stack.and_then(|number| analysis.image.threads.get(number));
            Place::Stack { thread: thread.map_or(0, |thread| thread.id) }
        }
        Some(Anchor::Static) => Place::Static,
        Some(_) => Place::External,
        None if analysis.image.segment(address).is_none() => Place::Unmapped,
        None if analysis.image.segment(address).is_some_and(|segment| segment.access.write) => {
            Place::External
        }
        None => Place::Constant,
    }
}

fn object_is_anchored(analysis: &Analysis, address: u64) -> bool {
    let node = analysis.object_around(address);
    node.is_some_and(|node| analysis.is_anchored(node))
}

fn block(analysis: &Analysis, number: u32) -> Place {
    let Some(block) = analysis.block(number) else {
        return Place::Unmapped;
    };
    let states = [
        ("anchored", SetName::Anchored),
        ("garbage", SetName::Garbage),
        ("unreferenced", SetName::Unreferenced),
        ("leaked", SetName::Leaked),
    ];
    let state =
        states.iter().find(|(_, set)| analysis.contains(*set, number)).map(|(name, _)| *name);
    let owner = (block.kind == Kind::Used).then(|| analysis.owner(number)).flatten();
    let signature = Signature::of(analysis, number, block);
    Place::Block {
        start: Address(block.address),
        size: block.size,
        kind: block.kind,
        class: signature.class(analysis),
        signature: signature.text(),
        state,
        owner: owner.and_then(|(object, _)| Object::at(analysis, object)),
        allocated: Allocated::of(analysis, number),
    }
}
