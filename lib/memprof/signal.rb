# frozen_string_literal: true

# Makes the process that loads it respond to a signal with a dump of its heap, and to `memprof dump`, `start`,
# `stop` and `stats`.
#
#   require "memprof/signal"   # and then: kill -URG PID, or: memprof dump PID
#
# Environment variables: MEMPROF_SIGNAL (default URG), MEMPROF_DIR (default: the system's directory for
# temporary files), MEMPROF_TRACK (on, off, or sample:N; default on), MEMPROF_DUMP_FORMAT,
# MEMPROF_DUMP_VALUES, MEMPROF_DUMP_COMPRESSION.

require_relative "bundler_exec"

Memprof::BundlerExec.prepare(ENV, "memprof/signal")
unless Memprof::BundlerExec.command?
  Memprof::BundlerExec.load_path
  # Before Rails is loaded, the application connects memprof to it, by its own `require "memprof"`.
  require(defined?(Rails::Railtie) && !defined?(Memprof::Railtie) ? "memprof" : "memprof/api")
  require_relative "signal/listener"

  Memprof::OnSignal.start(ENV)
end
