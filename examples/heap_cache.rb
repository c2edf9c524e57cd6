# frozen_string_literal: true

# A cache that never forgets: every visitor gets a session, and none is ever dropped. Writes three dumps on
# its way, cache-1.memprof to cache-3.memprof, into the directory that is given, or one that it makes. See
# docs/leaks.md.
#
#   ruby heap_cache.rb .
#   memprof leaks cache-3.memprof
require "memprof"
require "tmpdir"

Memprof.start

# What is known of a visitor.
class Session
  def initialize(visitor)
    @visitor = visitor
    @pages = Array.new(10) { |number| "/page/#{visitor}/#{number}" }
  end
end

# The mistake: nothing is ever taken out.
module Sessions
  STORE = {}

  def self.fetch(visitor)
    STORE[visitor] ||= Session.new(visitor)
  end
end

# Made for each request, and garbage after it.
Request = Struct.new(:visitor, :path)

def serve(visitors)
  visitors.each do |number|
    request = Request.new("visitor-#{number}", "/")
    Sessions.fetch(request.visitor)
  end
end

directory = ARGV.first || Dir.mktmpdir
[0...1000, 1000...3000, 3000...5000].each_with_index do |visitors, index|
  serve(visitors)
  GC.start
  Memprof.dump_all(File.join(directory, "cache-#{index + 1}.memprof"))
end
puts "#{Sessions::STORE.size} sessions; three dumps are in #{directory}"
