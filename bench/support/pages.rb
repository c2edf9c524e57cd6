# frozen_string_literal: true

require "uri"

# The heap pages of Memprof::Web, each with parameters that differ from request to request, so that no answer
# is cached.
class Pages
  # Keys for grouping objects; each is a separate page.
  BY = %w[class line file gem method type generation age size length shape slot imemo namespace superclass
    root].freeze
  # Keys for grouping changes.
  CHANGED_BY = %w[class site file type].freeze
  # Typical searches: a text, a class, a file, a place in a file, an address, a query.
  SOUGHT = ["%d@shop", "Customer%d", "heaps%d.rb", "heaps.rb:%d", "0x7f%06x", "length > %d"].freeze

  # @param heap [Memprof::Heap] the displayed heap
  # @param rounds [Integer] requests per page
  def initialize(heap, rounds)
    @objects = heap.ask(:top, limit: rounds, where: "type in (OBJECT, HASH, ARRAY)")[:objects]
    @classes = heap.histogram(by: :class, limit: 200, where: "class !~ '<'")[:rows].map { |row| row[:key] }
    # Most of the heap is outside of the drawing.
    @huge = heap.ask(:top, limit: 1, sort: :references)[:objects].first
  end

  # @return [Hash{String => #call}] by name, builds the path of a request from its number
  def to_h
    lists.merge(single, pictures, groups, searches).transform_values do |path|
      ->(number) { "/heaps/1/#{path.call(number)}" }
    end.merge(comparisons)
  end

  private

  def lists
    {
      "objects" => ->(number) { "objects?page=#{number + 1}" },
      "objects, chosen" => ->(number) { "objects?#{where(number)}" },
      "objects by referrers" => ->(number) { "objects?sort=referrers&page=#{number + 1}" },
      "leaks" => ->(number) { "leaks?threshold=#{1 + number * 0.1}" },
      "namespaces" => ->(number) { "namespaces?limit=#{50 + number}" },
      "equal strings" => ->(number) { "strings?#{where(number)}" },
      "collections" => ->(number) { "collections?#{where(number)}" },
      "threads" => ->(number) { "threads?page=#{number + 1}" },
      "procs" => ->(number) { "procs?#{where(number)}" },
      # Has no parameters: the first answer is the slowest.
      "slots" => ->(_) { "slots" }
    }
  end

  def single
    {
      "an object" => ->(number) { "objects/#{address(number)}" },
      "the one with most references" => ->(number) { "objects/#{@huge[:address]}?references=#{number + 1}" },
      "a class" => ->(number) { "classes/#{encoded(@classes[number % @classes.size])}" },
      "tree" => ->(number) { "tree?limit=20&of=#{address(number)}" },
      "tree from the roots" => ->(number) { "tree?limit=#{21 + number}" },
      "tree by class" => ->(number) { "tree?by_class=1&limit=#{21 + number}" }
    }
  end

  def pictures
    {
      "flame graph" => ->(number) { "flame?limit=#{2000 + number}" },
      "flame graph of an object" => ->(number) { "flame?of=#{address(number)}" },
      "references around an object" => ->(number) { "graph/#{address(number)}" },
      "around the one with most" => ->(number) { "graph/#{@huge[:address]}?limit=#{40 + number}" }
    }
  end

  def groups
    each = BY.to_h { |by| ["groups by #{by}", ->(number) { "groups?by=#{by}&#{where(number)}" }] }
    each.merge(
      "groups by class, all" => ->(number) { "groups?page=#{number + 1}" },
      "groups by class, then line" => ->(number) { "groups?by=class&then=line&#{where(number)}" },
      "groups by line, then class" => ->(number) { "groups?by=line&then=class&#{where(number)}" }
    )
  end

  def searches
    SOUGHT.to_h do |sought|
      ["search for #{sought.inspect}", ->(number) { "search?q=#{encoded(format(sought, 1000 + number))}" }]
    end
  end

  def comparisons
    {
      "diff" => ->(number) { "/diff?a=1&b=2&limit=#{40 + number}" },
      "diff by another" => ->(number) { "/diff?a=1&b=2&by=#{CHANGED_BY[number % CHANGED_BY.size]}" },
      "diff, chosen" => ->(number) { "/diff?a=1&b=2&#{where(number)}" },
      "diff, objects" => ->(number) { "/diff/objects?a=1&b=2&page=#{number + 1}" },
      "diff, what holds the new" => ->(number) { "/diff/interface?a=1&b=2&limit=#{30 + number}" }
    }
  end

  def address(number)
    @objects[number % @objects.size][:address]
  end

  def encoded(text)
    URI.encode_www_form_component(text)
  end

  # A condition that is always true, and different each time.
  def where(number)
    URI.encode_www_form(where: "address != #{number + 1}")
  end
end
