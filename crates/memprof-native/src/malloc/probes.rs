//! Probes for profilers outside of the process (USDT): `otel_memory:alloc(address, size, weighted_bytes)` when a sample is
//! allocated, `otel_memory:free(address)` when it is freed, as expected by OpenTelemetry's eBPF profiler. Without a profiler
//! attached, a probe is an instruction that does nothing.

use probe::probe;

/// Reports an allocated sample that stands for this many bytes.
#[inline(never)]
pub(super) fn allocated(address: usize, size: u64, weighted_bytes: u64) {
    probe!(otel_memory, alloc, address, size, weighted_bytes);
}

/// Reports a freed sample.
#[inline(never)]
pub(super) fn freed(address: usize) {
    probe!(otel_memory, free, address);
}
