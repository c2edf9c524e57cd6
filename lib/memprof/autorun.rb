# frozen_string_literal: true

require_relative "preload"

# What `memprof run` has every Ruby process of a command load. By hand:
#
#   RUBYOPT=-rmemprof/autorun MEMPROF_OUTPUT=report.txt rake
Memprof::Preload.run("process #{Process.pid} is not tracked") do
  require "memprof/autorun/recorder"
  Memprof::Autorun.start(ENV)
end
