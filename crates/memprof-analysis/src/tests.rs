//! What a dump says, as far as answers show it.

mod objspace_dumps;
mod own_objects;
mod thread_locals;
