# frozen_string_literal: true

# Defines MemoryProfiler, so that code that calls the gem memory_profiler (rack-mini-profiler, derailed,
# scripts) runs on memprof: `require "memprof/memory_profiler"` instead of `require "memory_profiler"`, or
# before it. docs/memory-profiler.md lists the differences.

require "memprof"
require_relative "compat/memory_profiler"

if !defined?(MemoryProfiler)
  MemoryProfiler = Memprof::MemoryProfiler
  # Marks `memory_profiler` as loaded. By its path as well, for bootsnap.
  $LOADED_FEATURES << "memory_profiler.rb"
  feature, path = $LOAD_PATH.resolve_feature_path("memory_profiler")
  $LOADED_FEATURES << path if feature == :rb && !$LOADED_FEATURES.include?(path)
elsif !MemoryProfiler.equal?(Memprof::MemoryProfiler)
  warn("memprof: memprof/memory_profiler is not used, because MemoryProfiler is defined already; " \
       "require it before memory_profiler, or in its place")
end
