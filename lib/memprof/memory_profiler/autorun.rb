# frozen_string_literal: true

# What MemoryProfiler::CLI has a command load.
require_relative "../memory_profiler"

Memprof::MemoryProfiler::CLI.autorun
