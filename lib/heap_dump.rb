# frozen_string_literal: true

# The gem heap_dump's interface: `require "heap_dump"` as before.
require_relative "memprof/compat/heap_dump"
