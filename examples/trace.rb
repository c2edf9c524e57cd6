# frozen_string_literal: true

# What does a block do to the VM and to the system?
#
#   ruby examples/trace.rb
require "memprof"
require "tempfile"

Memprof.trace do
  lines = Array.new(1_000) { |number| "line #{number}\n" }
  Tempfile.create("trace") do |file|
    lines.each { |line| file.syswrite(line) }
    file.rewind
    file.read
  end
  GC.start
  sleep 0.01
end
