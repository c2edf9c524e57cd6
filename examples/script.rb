# frozen_string_literal: true

# Which lines of a block make objects, and which of those stay?
#
#   ruby examples/script.rb
require "memprof"

GREETINGS = {}

# Meant as a cache. The key has the number of its entries in it, so no greeting is ever found again.
def greet(name)
  GREETINGS["#{name} #{GREETINGS.size}"] ||= "Hello, #{name.capitalize}! " * 10
end

report = Memprof.report do
  1_000.times { |number| greet(%w[ada grace alan][number % 3]) }
end

puts report
