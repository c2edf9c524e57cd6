# frozen_string_literal: true

require_relative "../preload"

# What `memprof boot` has every Ruby process of a command load.
Memprof::Preload.run("process #{Process.pid} is not measured") do
  require "memprof/boot/boot_recorder"
  Memprof::Boot::BootRecorder.start(ENV)
end
