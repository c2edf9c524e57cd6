# frozen_string_literal: true

require_relative "../preload"

# Loaded by `memprof malloc` into every Ruby process of a command.
Memprof::Preload.run("malloc of process #{Process.pid} is not recorded") { require "memprof/malloc" }
