# frozen_string_literal: true

# Defines MemoryProfiler, so that whatever calls the gem memory_profiler (rack-mini-profiler, derailed,
# scripts) runs on memprof: `require "memprof/memory_profiler"` in place of `require "memory_profiler"`, or
# before it.
# docs/memory-profiler.md says what differs.

require "memprof"
require_relative "memory_profiler/interface"

if !defined?(MemoryProfiler)
  MemoryProfiler = Memprof::MemoryProfiler
  # A later `require "memory_profiler"` finds it loaded. By its path as well, as bootsnap asks for that.
  $LOADED_FEATURES << "memory_profiler.rb"
  feature, path = $LOAD_PATH.resolve_feature_path("memory_profiler")
  $LOADED_FEATURES << path if feature == :rb && !$LOADED_FEATURES.include?(path)
elsif !MemoryProfiler.equal?(Memprof::MemoryProfiler)
  warn("memprof: memprof/memory_profiler is not used, because MemoryProfiler is defined already; " \
       "require it before memory_profiler, or in its place")
end
