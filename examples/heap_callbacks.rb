# frozen_string_literal: true

# Procs that wait in a driver: an asynchronous one, as em-mysql was, gets a block for each query and calls it
# when the answer comes. The server is slow, so blocks pile up, each with all that it sees. Writes
# callbacks.memprof into the directory that is given, or one that it makes. See docs/leaks.md.
#
#   ruby heap_callbacks.rb .
#   memprof leaks callbacks.memprof
require "memprof"
require "tmpdir"

Memprof.start

# Sends queries, and keeps what is to be done with the answers.
class Driver
  def initialize
    @waiting = []
  end

  def query(sql, &callback)
    @waiting << [sql, callback]
  end
end

# Fetches feeds, and looks into the database for each.
class Fetcher
  def initialize(driver)
    @driver = driver
  end

  def fetch(feed)
    body = "<entry>#{feed}</entry>" * 200
    @driver.query("SELECT id FROM feeds WHERE url = '#{feed}'") { |rows| rows.any? && body.size }
  end
end

$driver = Driver.new
fetcher = Fetcher.new($driver)
2000.times { |number| fetcher.fetch("http://example.com/#{number}.xml") }

directory = ARGV.first || Dir.mktmpdir
Memprof.dump_all(File.join(directory, "callbacks.memprof"))
puts "2000 queries sent, none answered; a dump is in #{directory}"
