//! Common properties of many objects: type, class, flags, shape, and the facts in their records. A record begins with the
//! number of its form.

use super::super::record::{CodeRange, Content, Detail, Flags, Kind, NameId, Object, Text};
use super::super::writer::TemplateId;

/// The kind of detail in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub(super) enum Tag {
    None,
    String,
    Symbol,
    Regexp,
    Bignum,
    Float,
    Length,
    Hash,
    Object,
    Class,
    Data,
    File,
    Imemo,
}

impl Tag {
    pub const ALL: [Tag; 13] = [
        Tag::None,
        Tag::String,
        Tag::Symbol,
        Tag::Regexp,
        Tag::Bignum,
        Tag::Float,
        Tag::Length,
        Tag::Hash,
        Tag::Object,
        Tag::Class,
        Tag::Data,
        Tag::File,
        Tag::Imemo,
    ];
}

/// Facts that any record may have.
pub(super) const ALLOCATION: u8 = 1;
pub(super) const OBJECT_ID: u8 = 1 << 1;
pub(super) const FIELDS: u8 = 1 << 2;
/// The memsize is present: it differs from the slot size.
pub(super) const MEMSIZE: u8 = 1 << 3;
pub(super) const SHAPE: u8 = 1 << 4;
pub(super) const AGE: u8 = 1 << 5;
/// With [`ALLOCATION`]: the application line is present, too.
pub(super) const CALLER: u8 = 1 << 6;

/// Bits of a text: two for the state of its bytes, two for the kind of its content, then these.
pub(super) const LENGTH: u8 = 1 << 4;
pub(super) const CAPACITY: u8 = 1 << 5;
/// The content has exactly as many bytes as the length.
pub(super) const EXACT: u8 = 1 << 6;

/// Bits of other details: the first to fourth optional fact.
pub(super) const FIRST: u8 = 1;
pub(super) const SECOND: u8 = 1 << 1;
pub(super) const THIRD: u8 = 1 << 2;
pub(super) const FOURTH: u8 = 1 << 3;

/// A form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub class: u64,
    pub class_name: Option<NameId>,
    pub slot_size: u32,
    pub shape_id: u32,
    pub flags: Flags,
    /// Encoding of a text, type of data, kind of imemo.
    pub name: Option<NameId>,
    pub kind: Kind,
    pub age: u8,
    /// [`ALLOCATION`] and the like.
    pub facts: u8,
    pub tag: Tag,
    /// Bits of the detail.
    pub bits: u8,
}

impl Form {
    #[inline(always)]
    pub fn of(object: &Object<'_>) -> Form {
        let (tag, bits, name) = detail(&object.detail);
        let fact = |condition: bool, bit: u8| if condition { bit } else { 0 };
        Form {
            class: object.class,
            class_name: object.class_name,
            slot_size: object.slot_size,
            shape_id: object.shape_id.unwrap_or(0),
            flags: object.flags,
            name,
            kind: object.kind,
            age: object.age.unwrap_or(0),
            facts: fact(object.allocation.is_some(), ALLOCATION)
                | fact(object.object_id.is_some(), OBJECT_ID)
                | fact(!object.fields.is_empty(), FIELDS)
                | fact(object.memsize != u64::from(object.slot_size), MEMSIZE)
                | fact(object.shape_id.is_some(), SHAPE)
                | fact(object.age.is_some(), AGE)
                | fact((object.allocation).is_some_and(|at| at.caller.is_some()), CALLER),
            tag,
            bits,
        }
    }

    /// The differences between objects of one template: the facts in their records, and the bits of their details.
    #[inline(always)]
    pub fn facts(object: &Object<'_>) -> (u8, u8) {
        let form = Form::of(object);
        (form.facts, form.bits)
    }

    /// A form as a few words, for fast comparison.
    #[inline(always)]
    pub fn words(&self) -> Words {
        let form = self;
        let name = |name: Option<NameId>| name.map_or(0, |name| u64::from(name.0) + 1);
        let small = [form.kind.0, form.age, form.facts, form.tag as u8, form.bits];
        let small = small.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
        [
            form.class,
            name(form.class_name) << 32 | u64::from(form.slot_size),
            u64::from(form.shape_id) << 32 | u64::from(form.flags.0),
            name(form.name),
            small,
        ]
    }

    /// The state of the bytes according to a text's bits.
    pub fn coderange(&self) -> CodeRange {
        match self.bits & 3 {
            0 => CodeRange::Unknown,
            1 => CodeRange::SevenBit,
            2 => CodeRange::Valid,
            _ => CodeRange::Broken,
        }
    }

    /// Whether the record has this fact.
    pub fn fact(&self, bit: u8) -> bool {
        self.facts & bit != 0
    }

    /// Whether the detail has this bit.
    pub fn bit(&self, bit: u8) -> bool {
        self.bits & bit != 0
    }
}

/// A form, packed.
pub(super) type Words = [u64; 5];

/// Slot of a form in the table.
#[inline(always)]
fn place([class, sizes, flags, name, small]: Words) -> usize {
    let one = class ^ sizes.rotate_left(20) ^ name.rotate_left(50);
    let other = flags.rotate_left(17) ^ small;
    let mixed = one.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ other;
    (mixed.wrapping_mul(0xd6e8_feb8_6659_fd93) >> (64 - TABLE_BITS)) as usize
}

#[inline(always)]
fn detail(detail: &Detail<'_>) -> (Tag, u8, Option<NameId>) {
    let bit = |condition: bool, bit: u8| if condition { bit } else { 0 };
    match detail {
        Detail::None => (Tag::None, 0, None),
        Detail::String(text) => (Tag::String, text_bits(text), Some(text.encoding)),
        Detail::Symbol(text) => (Tag::Symbol, text_bits(text), Some(text.encoding)),
        Detail::Regexp(text) => (Tag::Regexp, text_bits(text), Some(text.encoding)),
        Detail::Bignum(text) => (Tag::Bignum, text_bits(text), Some(text.encoding)),
        Detail::Float(_) => (Tag::Float, 0, None),
        Detail::Length(_) => (Tag::Length, 0, None),
        Detail::Hash { default_proc, .. } => (Tag::Hash, bit(*default_proc, FIRST), None),
        Detail::Object { .. } => (Tag::Object, 0, None),
        Detail::Class { name, real_name, super_name, variations, .. } => {
            let bits = bit(name.is_some(), FIRST)
                | bit(real_name.is_some(), SECOND)
                | bit(super_name.is_some(), THIRD)
                | bit(variations.is_some(), FOURTH);
            (Tag::Class, bits, None)
        }
        Detail::Data { type_name } => (Tag::Data, 0, *type_name),
        Detail::File { fd } => (Tag::File, bit(fd.is_some(), FIRST), None),
        Detail::Imemo { name, mid, called_id, receiver_class } => {
            let bits = bit(mid.is_some(), FIRST)
                | bit(called_id.is_some(), SECOND)
                | bit(*receiver_class != 0, THIRD);
            (Tag::Imemo, bits, Some(*name))
        }
    }
}

#[inline(always)]
fn text_bits(text: &Text<'_>) -> u8 {
    let range = match text.coderange {
        CodeRange::Unknown => 0,
        CodeRange::SevenBit => 1,
        CodeRange::Valid => 2,
        CodeRange::Broken => 3,
    };
    let (content, bytes) = match text.content {
        Content::Full(bytes) => (0, Some(bytes.len() as u64)),
        Content::Truncated(bytes) => (1 << 2, Some(bytes.len() as u64)),
        Content::Mark(_) => (2 << 2, None),
        Content::Absent => (3 << 2, None),
    };
    let length = if text.length.is_some() { LENGTH } else { 0 };
    let capacity = if text.capacity.is_some() { CAPACITY } else { 0 };
    let exact = if bytes.is_some() && bytes == text.length { EXACT } else { 0 };
    range | content | length | capacity | exact
}

/// Forms already in the block, as far as they are cached: an evicted one is written again.
pub(super) struct Forms {
    table: Vec<(u32, u32, Words)>,
    /// By template number.
    templates: Vec<OfTemplate>,
    block: u32,
    next: u32,
}

/// The last form of a template's objects.
#[derive(Clone, Copy)]
struct OfTemplate {
    block: u32,
    number: u32,
    facts: u8,
    bits: u8,
}

const TABLE_BITS: u32 = 12;

impl Default for Forms {
    fn default() -> Forms {
        Forms {
            table: vec![(u32::MAX, 0, [0; 5]); 1 << TABLE_BITS],
            templates: Vec::new(),
            block: 0,
            next: 0,
        }
    }
}

impl Forms {
    /// Forgets the contents of the last block.
    pub fn next_block(&mut self) {
        self.block += 1;
        self.next = 0;
    }

    /// The number of an object's form in this block, if it is already there.
    #[inline(always)]
    pub fn of_template(
        &self,
        TemplateId(template): TemplateId,
        facts: u8,
        bits: u8,
    ) -> Option<u32> {
        let last = self.templates.get(template as usize)?;
        (last.block == self.block && last.facts == facts && last.bits == bits)
            .then_some(last.number)
    }

    /// Records the form number of an object.
    pub fn learn(&mut self, TemplateId(template): TemplateId, facts: u8, bits: u8, number: u32) {
        const NONE: OfTemplate = OfTemplate { block: u32::MAX, number: 0, facts: 0, bits: 0 };
        let place = template as usize;
        if place >= self.templates.len() {
            self.templates.resize(place + place / 2 + 64, NONE);
        }
        self.templates[place] = OfTemplate { block: self.block, number, facts, bits };
    }

    /// The number of a form in this block, and whether it is new there.
    #[inline(always)]
    pub fn number(&mut self, form: Words) -> (u32, bool) {
        let entry = &mut self.table[place(form)];
        let other = (entry.2.iter().zip(form)).fold(0, |other, (one, two)| other | (one ^ two));
        if entry.0 == self.block && other == 0 {
            return (entry.1, false);
        }
        let number = self.next;
        self.next += 1;
        *entry = (self.block, number, form);
        (number, true)
    }
}
