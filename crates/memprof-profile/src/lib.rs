//! Allocation profiles: sites, stacks, the table of live objects, sampling, aggregation and exports.
//!
//! The crate is independent of any virtual machine: a host reports allocations and frees to a [`recorder::Recorder`], and asks
//! it for a [`profile::Profile`], which is plain data for reports and exports.

pub mod cells;
pub mod compare;
pub mod export;
pub mod group;
pub mod growth;
mod lean;
pub mod live;
pub mod pace;
pub mod printable;
pub mod profile;
pub mod recorder;
pub mod running_total;
pub mod sampler;
pub mod samples;
pub mod sessions;
pub mod sites;
pub mod string_values;
