//! Where an allocation comes from: what [`super::frames`] finds and [`super::stack_tree`] remembers.

use memprof_profile::sites::{FrameKey, Sites, StackId};

/// Where an object was allocated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// In a program.
    Program(Found),
    /// In memprof itself.
    Own,
}

/// The place and the stack of an allocation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The innermost frame of a user's file: its file and line are the site's.
    pub place: StackId,
    /// The innermost frame.
    pub stack: StackId,
    /// The place is the application's. If not, it is of interest which of its lines called it.
    pub application: bool,
    /// The frame is of a file that was loaded: other than in code that was evaluated, its path and line name one method.
    pub loaded: bool,
}

impl Found {
    /// Where objects are put that are allocated without a frame of Ruby code.
    pub fn nowhere(sites: &mut Sites) -> Self {
        let key = FrameKey {
            file: "".into(),
            label: String::new(),
            first_line: 0,
            native: Some(0),
        };
        let (frame, _) = sites.frame(key);
        let place = sites.stack(None, frame, 0);
        Found {
            place,
            stack: place,
            application: false,
            loaded: false,
        }
    }
}
