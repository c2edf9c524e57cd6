# frozen_string_literal: true

# Why is this object alive, what does it hold, and what has grown? A shop forgets to forget its visitors.
#
#   ruby examples/heap.rb
require "memprof"

# Somebody who looks around.
class Visitor
  def initialize(number)
    @name = "visitor #{number}"
    @pages = Array.new(5) { |page| "page #{page} of #{@name}" }
  end
end

# Knows everybody who was ever there.
module Shop
  VISITORS = {}

  def self.visit(number)
    VISITORS[number] = Visitor.new(number)
  end
end

before = Memprof::Heap.capture
1000.times { |number| Shop.visit(number) }
visitor = Shop.visit(42)
after = Memprof::Heap.capture

puts "Why is it alive?  #{after.path_to(visitor)}"
puts "It holds          #{after.object(visitor).retains.size} objects, #{after.retained(visitor)} bytes"
puts "All of them hold  #{after.where("class = Visitor").retained} bytes"
puts "What has grown:"
before.diff(after).grown(limit: 3, sort: :count).each do |row|
  puts format("%+8d  %s", row[:change][:count], row[:class])
end
