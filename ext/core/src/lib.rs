//! The crates that know no Ruby. A platform gem has one library of them for all Rubies.

pub use memprof_analysis as analysis;
pub use memprof_dump as dump;
pub use memprof_heap as heap;
pub use memprof_image as image;
pub use memprof_ledger as ledger;
pub use memprof_paths as paths;
pub use memprof_profile as profile;
pub use memprof_recording as recording;
pub use memprof_trace as trace;
