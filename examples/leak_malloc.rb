# frozen_string_literal: true

# A leak that Ruby's heap knows nothing of: 1024 bytes for each number, of which every second block is freed.
# RSS grows by 50 MiB, ObjectSpace.memsize_of_all by nothing.
#
#   memprof malloc ruby examples/leak_malloc.rb

require "objspace"

begin
  require "fiddle"
rescue LoadError
  puts "This example needs the gem fiddle."
  exit
end

# Converts numbers by a C library.
class Converter
  SIZE = 1024

  def convert(number)
    buffer = Fiddle::Pointer.new(Fiddle.malloc(SIZE), SIZE) # the leak
    buffer[0, 8] = [number].pack("q")
    Fiddle.free(buffer.to_i) if number.even?
  end
end

def usage
  rss = File.exist?("/proc/self/status") ? File.read("/proc/self/status")[/VmRSS:\s*(\d+)/, 1].to_i / 1024 : 0
  GC.start
  puts "RSS #{rss} MiB, ObjectSpace #{ObjectSpace.memsize_of_all >> 20} MiB"
end

usage
converter = Converter.new
100_000.times { |number| converter.convert(number) }
usage
