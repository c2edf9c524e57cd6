//! Origin of an allocation, found by [`super::frames`] and cached by [`super::stack_tree`].

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
    /// The innermost frame of user code: its file and line are the site's.
    pub place: StackId,
    /// The innermost frame.
    pub stack: StackId,
    /// Whether the place is in the application. Otherwise the calling line of the application is of interest.
    pub application: bool,
    /// Whether the frame is of a loaded file: unlike in evaluated code, its path and line identify one method.
    pub loaded: bool,
}

impl Found {
    /// The origin of objects allocated without a frame of Ruby code.
    pub fn nowhere(sites: &mut Sites) -> Self {
        let key =
            FrameKey { file: "".into(), label: String::new(), first_line: 0, native: Some(0) };
        let (frame, _) = sites.frame(key);
        let place = sites.stack(None, frame, 0);
        Found { place, stack: place, application: false, loaded: false }
    }
}
