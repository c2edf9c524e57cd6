# frozen_string_literal: true

# Loaded by the command that MemoryProfiler::CLI runs.
require_relative "../../memory_profiler"

Memprof::MemoryProfiler::CLI.autorun
