# frozen_string_literal: true

require_relative "../preload"

# What `memprof malloc` has every Ruby process of a command load.
Memprof::Preload.run("malloc of process #{Process.pid} is not recorded") { require "memprof/malloc" }
