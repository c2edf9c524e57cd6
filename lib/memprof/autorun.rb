# frozen_string_literal: true

require_relative "preload"

# Loaded by `memprof run` into every Ruby process of a command. Manually:
#
#   RUBYOPT=-rmemprof/autorun MEMPROF_OUTPUT=report.txt rake
Memprof::Preload.run("process #{Process.pid} is not tracked") do
  require "memprof/autorun/recorder"
  Memprof::Autorun.start(ENV)
end
