//! Builds profiles from the recorder's tables.

use rustc_hash::FxHashMap;

use crate::profile::{Amount, Frame, Profile, SiteRow, StackNode};
use crate::sites::{Interner, Site, SiteId, Sites, StackId};

/// Copies the entries that a profile's rows refer to from the recorder's tables, renumbered.
pub struct ProfileBuilder<'a> {
    sites: &'a Sites,
    files: Interner<String>,
    frames: Interner<Frame>,
    stacks: Interner<StackNode>,
    classes: Interner<String>,
    copied: FxHashMap<StackId, u32>,
}

impl<'a> ProfileBuilder<'a> {
    /// A profile builder for these sites.
    pub fn new(sites: &'a Sites) -> Self {
        ProfileBuilder {
            sites,
            files: Interner::default(),
            frames: Interner::default(),
            stacks: Interner::default(),
            classes: Interner::default(),
            copied: FxHashMap::default(),
        }
    }

    /// An empty row for a site.
    pub fn row(&mut self, site: Site) -> SiteRow {
        SiteRow {
            site: self.stack(site.place),
            stack: self.stack(site.stack),
            class: self.classes.intern(self.sites.class_name(site.class).to_owned()),
            allocated: Amount::default(),
            retained: Amount::default(),
            freed: Amount::default(),
            ages: Default::default(),
            peak: Amount::default(),
        }
    }

    /// Copies a stack, outermost frame first, so that parents come first.
    fn stack(&mut self, id: StackId) -> u32 {
        let mut path = Vec::new();
        let mut next = Some(id);
        while let Some(id) = next.filter(|id| !self.copied.contains_key(id)) {
            path.push(id);
            next = self.sites.node(id).and_then(|node| node.parent);
        }
        let mut parent = next.and_then(|id| self.copied.get(&id).copied());
        for id in path.into_iter().rev() {
            let Some(node) = self.sites.node(id) else {
                continue;
            };
            let Some(key) = self.sites.frame_key(node.frame) else {
                continue;
            };
            let frame = self.frames.intern(Frame {
                file: self.files.intern(key.file.to_string()),
                method: self.sites.method(node.frame).to_owned(),
                first_line: key.first_line,
                native: key.native.is_some(),
            });
            let copy = self.stacks.intern(StackNode { parent, frame, line: node.line });
            self.copied.insert(id, copy);
            parent = Some(copy);
        }
        parent.unwrap_or_default()
    }

    /// File (numbered within the profile) and line of a site.
    pub fn location(&mut self, site: SiteId) -> (u32, u32) {
        let Some(site) = self.sites.get(site) else {
            return (self.files.intern(String::new()), 0);
        };
        let (file, line) = self.sites.location(site.place);
        (self.files.intern(file.to_owned()), line)
    }

    /// A profile of everything copied, without rows.
    pub fn finish(self) -> Profile {
        Profile {
            files: self.files.into_values(),
            frames: self.frames.into_values(),
            stacks: self.stacks.into_values(),
            classes: self.classes.into_values(),
            ..Profile::default()
        }
    }
}
