# frozen_string_literal: true

# A module that grows: a template is compiled into a method for each thing that it is rendered for, and each
# method is kept for good. Writes module.memprof into the directory that is given, or one that it makes. See
# docs/leaks.md.
#
#   ruby heap_module.rb .
#   memprof leaks module.memprof
require "memprof"
require "tmpdir"

Memprof.start

# The mistake: the name of the method has the number of the order in it.
module Templates
  extend self

  def render(order)
    name = "render_order_#{order}"
    module_eval("def #{name} = \"Order #{order}: thank you\"") unless method_defined?(name)
    public_send(name)
  end
end

10_000.times { |order| Templates.render(order) }

directory = ARGV.first || Dir.mktmpdir
Memprof.dump_all(File.join(directory, "module.memprof"))
puts "#{Templates.instance_methods.size - 1} templates compiled; a dump is in #{directory}"
