# frozen_string_literal: true

# Two versions of a program that does the same work: version 2 remembers the line of each product as it was
# read, and gives each product a list of tags, though hardly one has any. Writes version-1.memprof or
# version-2.memprof into the directory that is given, or one that it makes. See docs/leaks.md.
#
#   ruby heap_versions.rb 1 .
#   ruby heap_versions.rb 2 .
#   memprof diff version-1.memprof version-2.memprof
require "memprof"
require "tmpdir"

Memprof.start

# As version 1 had it.
class Product
  def initialize(line)
    @name, @price = line.split(",")
  end
end

# What version 2 added.
class TaggedProduct < Product
  def initialize(line)
    super
    @line = line
    @currency = +"EUR"
    @tags = []
  end
end

version = (ARGV.first || 1).to_i
made = version == 1 ? Product : TaggedProduct
CATALOG = Array.new(5000) { |number| made.new("product-#{number},#{number}.99") }

directory = ARGV[1] || Dir.mktmpdir
Memprof.dump_all(File.join(directory, "version-#{version}.memprof"))
puts "#{CATALOG.size} products in version #{version}; a dump is in #{directory}"
