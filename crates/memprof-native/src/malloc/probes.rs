//! Probes that profilers outside of the process attach to (USDT): `otel_memory:alloc(address, size, weighted_bytes)` when a
//! sample is allocated, `otel_memory:free(address)` when it is freed. This is the contract of OpenTelemetry's eBPF profiler.
//! A probe that no profiler has attached to is an instruction that does nothing.

use probe::probe;

/// A sample was allocated, which stands for so many bytes.
#[inline(never)]
pub(super) fn allocated(address: usize, size: u64, weighted_bytes: u64) {
    probe!(otel_memory, alloc, address, size, weighted_bytes);
}

/// A sample is freed.
#[inline(never)]
pub(super) fn freed(address: usize) {
    probe!(otel_memory, free, address);
}
