//! Ids by name: files, frames or stacks with the same text share one id here.
//!
//! A host may know one file or class under several ids (a redefined class, a script loaded twice). People see only names, so
//! rows with the same text are merged.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use super::named;
use crate::profile::{Amount, Profile, SiteRow};

/// Maps each id of a profile to the first id with the same name.
pub(crate) struct Names<'p> {
    profile: &'p Profile,
    files: Vec<u32>,
    classes: Vec<u32>,
    methods: Vec<u32>,
    frames: Vec<u32>,
    stacks: Vec<u32>,
}

impl<'p> Names<'p> {
    /// Compares the names in `profile`.
    pub(crate) fn new(profile: &'p Profile) -> Self {
        let files = first_ids(profile.files.iter());
        let classes = first_ids(profile.classes.iter());
        let methods = first_ids(profile.frames.iter().map(|frame| &frame.method));
        let frames = first_ids(profile.frames.iter().zip(&methods).map(|(frame, method)| {
            // The file of a native frame is meaningless.
            let file = (!frame.native).then(|| files[frame.file as usize]);
            (file, *method)
        }));
        let mut names = Names { profile, files, classes, methods, frames, stacks: Vec::new() };
        names.stacks = names.compare_stacks();
        names
    }

    /// Parents come before their children, so one pass over the tree is enough.
    fn compare_stacks(&self) -> Vec<u32> {
        let mut first = FxHashMap::default();
        let mut stacks: Vec<u32> = Vec::with_capacity(self.profile.stacks.len());
        for (id, node) in self.profile.stacks.iter().enumerate() {
            let parent = node.parent.map(|parent| stacks[parent as usize]);
            let key = (parent, self.frames[node.frame as usize], node.line);
            stacks.push(*first.entry(key).or_insert(id as u32));
        }
        stacks
    }

    /// The rows of the profile with first ids, merged where they have the same text, in the order of their first appearance.
    pub(crate) fn rows(&self) -> Vec<SiteRow> {
        let mut rows: Vec<SiteRow> = Vec::new();
        let mut places = FxHashMap::default();
        for row in &self.profile.rows {
            let class = self.classes[row.class as usize];
            let stack = self.stacks[row.stack as usize];
            let site = self.profile.stacks[row.site as usize];
            let frame = &self.profile.frames[site.frame as usize];
            let file = self.files[frame.file as usize];
            let key = (file, site.line, self.methods[site.frame as usize], class, stack);
            let place = *places.entry(key).or_insert(rows.len());
            match rows.get_mut(place) {
                Some(same) => {
                    same.allocated.add(row.allocated);
                    same.retained.add(row.retained);
                    same.freed.add(row.freed);
                    same.ages.add(row.ages);
                    same.peak.add(row.peak);
                }
                None => rows.push(SiteRow {
                    class,
                    stack,
                    site: self.stacks[row.site as usize],
                    ..row.clone()
                }),
            }
        }
        rows.retain(|row| {
            [row.allocated, row.retained, row.freed].iter().any(|&all| all != Amount::default())
        });
        rows
    }

    /// The nodes of `stack`, innermost first.
    pub(crate) fn path(&self, stack: u32) -> impl Iterator<Item = u32> + use<'p> {
        let profile = self.profile;
        std::iter::successors(Some(stack), move |node| profile.stacks[*node as usize].parent)
    }

    /// The file and line of `node`. A method written in C is located at its caller, as in Ruby's backtraces.
    pub(crate) fn place(&self, node: u32) -> (&'p str, u32) {
        let at = self.path(node).find(|node| !self.profile.frame(*node as usize).native);
        match at {
            Some(at) => {
                let file = self.profile.file_name(self.profile.frame(at as usize));
                (file, self.profile.stacks[at as usize].line)
            }
            None => (super::NO_NAME, 0),
        }
    }

    /// The first id with the text of `node`'s frame.
    pub(crate) fn frame_id(&self, node: u32) -> u32 {
        self.frames[self.profile.stacks[node as usize].frame as usize]
    }

    /// The first id with the text of `node`'s stack.
    pub(crate) fn stack_id(&self, node: u32) -> u32 {
        self.stacks[node as usize]
    }

    /// Name of a class.
    pub(crate) fn class(&self, class: u32) -> &'p str {
        named(&self.profile.classes[class as usize])
    }

    /// Name of the method of `node`.
    pub(crate) fn method(&self, node: u32) -> &'p str {
        named(&self.profile.frame(node as usize).method)
    }
}

/// For each of `names`, the index of the first equal one.
pub(super) fn first_ids<K: Hash + Eq>(names: impl Iterator<Item = K>) -> Vec<u32> {
    let mut first = FxHashMap::default();
    names.enumerate().map(|(id, name)| *first.entry(name).or_insert(id as u32)).collect()
}
