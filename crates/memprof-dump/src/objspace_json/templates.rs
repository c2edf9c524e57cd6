//! Texts shared by all objects of a template, for the walk over a live heap.

use super::super::record::{Flags, Object};
use super::super::writer::TemplateId;
use super::detail;

/// The common text of lines of one template.
struct Texts {
    head: Box<[u8]>,
    flags: Box<[u8]>,
    /// The values that they were built from; tests check that objects of one template are alike.
    made_of: (u64, Flags),
}

/// By their number.
#[derive(Default)]
pub(super) struct Templates {
    texts: Vec<Option<Texts>>,
}

impl Templates {
    /// The text after the address. Must be called before [`Templates::flags`].
    #[inline(always)]
    pub fn head(&mut self, template: TemplateId, object: &Object<'_>, ruby: (u8, u8)) -> &[u8] {
        let place = template.0 as usize;
        if !matches!(self.texts.get(place), Some(Some(_))) {
            self.learn(place, object, ruby);
        }
        match &self.texts[place] {
            Some(texts) => {
                debug_assert_eq!(texts.made_of, (object.class, object.flags));
                &texts.head
            }
            None => &[],
        }
    }

    /// The text after the memsize.
    #[inline(always)]
    pub fn flags(&self, template: TemplateId) -> &[u8] {
        match self.texts.get(template.0 as usize) {
            Some(Some(texts)) => &texts.flags,
            _ => &[],
        }
    }

    #[cold]
    #[inline(never)]
    fn learn(&mut self, place: usize, object: &Object<'_>, ruby: (u8, u8)) {
        if place >= self.texts.len() {
            self.texts.resize_with(place + place / 2 + 64, || None);
        }
        let (mut head, mut flags) = (Vec::new(), Vec::new());
        detail::head_of(&mut head, object, ruby);
        detail::collector(&mut flags, object, ruby);
        self.texts[place] = Some(Texts {
            head: head.into(),
            flags: flags.into(),
            made_of: (object.class, object.flags),
        });
    }
}
