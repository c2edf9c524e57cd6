# frozen_string_literal: true

# Code that is generated without end: each message gets a method of its own in one module, and methods stay.
# Objects are few, as instruction sequences are no objects that ObjectSpace shows.
#
#   memprof malloc ruby examples/leak_eval.rb

require "memprof"

# Templates of messages, compiled to methods.
module Templates
  def self.compile(name, source)
    module_eval("def render_#{name}; #{source}; end") # the leak
    public_instance_method("render_#{name}")
  end
end

def usage
  memory = Memprof.memory
  puts "RSS #{memory.rss >> 20} MiB, #{memory[:iseqs] >> 20} MiB of it instruction sequences"
rescue Memprof::Error # no /proc
  puts "#{Memprof.iseqs.memsize >> 20} MiB of instruction sequences"
end

usage
source = "nil.to_s;" * 100
2_000.times { |number| Templates.compile("message_#{number}", source) }
usage
