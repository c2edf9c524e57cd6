//! Removes unused sites.

use rustc_hash::FxHashMap;

use super::{ClassId, FrameId, Node, Site, SiteId, Sites, StackId};

/// The remaining entries, and their new numbers.
#[derive(Debug)]
pub struct Kept {
    /// Frames, stacks, classes and sites.
    pub sites: Sites,
    /// Old number -> new number.
    pub by_site: FxHashMap<SiteId, SiteId>,
    /// Old number -> new number.
    pub by_frame: FxHashMap<FrameId, FrameId>,
}

impl Sites {
    /// Copies `used`, everything they refer to, and `frames`.
    pub fn keep(
        &self,
        used: impl Iterator<Item = SiteId>,
        frames: impl Iterator<Item = FrameId>,
    ) -> Kept {
        let mut kept = Kept {
            sites: Sites {
                epoch: self.epoch,
                ..Sites::default()
            },
            by_site: FxHashMap::default(),
            by_frame: FxHashMap::default(),
        };
        frames.for_each(|frame| {
            kept.frame(self, frame);
        });
        let used: Vec<(SiteId, Site)> = used.filter_map(|id| Some((id, self.get(id)?))).collect();
        let stacks = kept.stacks(self, used.iter().map(|(_, site)| site));
        for (id, site) in used {
            let moved = Site {
                class: kept.class(self, site.class),
                place: stacks[site.place.number() as usize],
                stack: stacks[site.stack.number() as usize],
                caller: site.caller.map(|caller| stacks[caller.number() as usize]),
            };
            let moved = kept.sites.site(moved);
            kept.by_site.insert(id, moved);
        }
        kept
    }
}

impl Kept {
    /// The new numbers of the stacks of `sites`; index is the old number. A caller has a smaller number than its callees.
    fn stacks<'a>(&mut self, old: &Sites, sites: impl Iterator<Item = &'a Site>) -> Vec<StackId> {
        let mut wanted = vec![false; old.stacks.len()];
        for site in sites {
            wanted[site.place.number() as usize] = true;
            wanted[site.stack.number() as usize] = true;
            if let Some(caller) = site.caller {
                wanted[caller.number() as usize] = true;
            }
        }
        for id in (0..wanted.len())
            .rev()
            .filter(|id| wanted[*id])
            .collect::<Vec<_>>()
        {
            let mut caller = old
                .node(StackId::new(id as u32))
                .and_then(|node| node.parent);
            while let Some(id) = caller.filter(|caller| !wanted[caller.number() as usize]) {
                wanted[id.number() as usize] = true;
                caller = old.node(id).and_then(|node| node.parent);
            }
        }
        let mut moved = vec![StackId::new(0); wanted.len()];
        for (id, _) in wanted.iter().enumerate().filter(|(_, wanted)| **wanted) {
            let Some(Node {
                parent,
                frame,
                line,
            }) = old.node(StackId::new(id as u32))
            else {
                continue;
            };
            let parent = parent.map(|parent| moved[parent.number() as usize]);
            let frame = self.frame(old, frame);
            moved[id] = self.sites.stack(parent, frame, line);
        }
        moved
    }

    fn frame(&mut self, old: &Sites, id: FrameId) -> FrameId {
        if let Some(moved) = self.by_frame.get(&id) {
            return *moved;
        }
        let Some((key, epoch)) = old.frames.get(id.0).cloned() else {
            return id;
        };
        let now = std::mem::replace(&mut self.sites.epoch, epoch);
        let (moved, _) = self.sites.frame(key);
        self.sites.epoch = now;
        if let Some(Some(method)) = old.methods.get(id.0 as usize) {
            self.sites.name_method(moved, method.clone());
        }
        self.by_frame.insert(id, moved);
        moved
    }

    fn class(&mut self, old: &Sites, id: ClassId) -> ClassId {
        let (name, identity) = (old.class_name(id), old.class_identity(id));
        self.sites.anonymous_class(name, identity)
    }
}

#[cfg(test)]
mod tests {
    use super::super::FrameKey;
    use super::*;

    fn key(file: &str) -> FrameKey {
        FrameKey {
            file: file.into(),
            label: "work".into(),
            first_line: 1,
            native: None,
        }
    }

    #[test]
    fn what_is_used_reads_the_same_and_the_rest_is_gone() {
        let mut sites = Sites::default();
        let mut all = Vec::new();
        for file in ["a.rb", "b.rb", "c.rb"] {
            let (caller, _) = sites.frame(key("caller.rb"));
            let (frame, _) = sites.frame(key(file));
            sites.name_method(frame, format!("{file}#work"));
            sites.begin_epoch();
            let outer = sites.stack(None, caller, 3);
            let place = sites.stack(Some(outer), frame, 7);
            let class = sites.anonymous_class(&format!("Class of {file}"), 2);
            all.push(sites.site(Site {
                class,
                place,
                stack: place,
                caller: Some(outer),
            }));
        }
        let (unnamed, _) = sites.frame(key("unnamed.rb"));
        let kept = sites.keep([all[2]].into_iter(), [unnamed].into_iter());
        let site = kept.sites.get(kept.by_site[&all[2]]).unwrap();
        assert_eq!(kept.sites.location(site.place), ("c.rb", 7));
        assert_eq!(kept.sites.class_name(site.class), "Class of c.rb");
        assert_eq!(kept.sites.class_identity(site.class), 2);
        let node = kept.sites.node(site.stack).unwrap();
        assert_eq!(kept.sites.method(node.frame), "c.rb#work");
        assert_eq!(kept.sites.location(node.parent.unwrap()), ("caller.rb", 3));
        assert_eq!(site.caller, node.parent);
        let frame = kept.by_frame[&unnamed];
        assert_eq!(
            kept.sites.frame_key(frame).unwrap().file.as_ref(),
            "unnamed.rb"
        );
        assert_eq!((kept.sites.sites.len(), kept.sites.frames.len()), (1, 3));
        assert!(kept.sites.memsize() < sites.memsize());
    }
}
