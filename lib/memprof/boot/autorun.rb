# frozen_string_literal: true

require_relative "../preload"

# Loaded by `memprof boot` into every Ruby process of a command.
Memprof::Preload.run("process #{Process.pid} is not measured") do
  require "memprof/boot/boot_recorder"
  Memprof::Boot::BootRecorder.start(ENV)
end
