# frozen_string_literal: true

require "open3"
require "rbconfig"

# Other programs that read `ObjectSpace.dump_all`. Each is given by an environment variable (an executable, or
# a checkout of its source), or found on PATH or among the gems.
#
# reap answers the measured question. The others don't compute retained sizes. heapy sums up sizes by line;
# sheap reads, or also inverts references; harb reads: the minimum for any answer.
module Peers
  TIME = "/usr/bin/time"

  # A program: `command` builds its command line for a file, and is nil if it is missing.
  Peer = Struct.new(:name, :command, :advice, :input, keyword_init: true) do
    # The cost of reading a file; a text if it could not be measured.
    #
    # @return [Hash{String => Float}, String]
    def measure(path)
      return "it is not there (#{advice})" unless command
      return "needs #{TIME} (the package time)" unless File.executable?(TIME)

      words = [TIME, "-f", "%e %U %S %M", *command.call(path)]
      _, error, status = Open3.capture3(*words, stdin_data: input.to_s)
      figures = error.lines.last.to_s.split
      done = status.success? && figures.size == 4
      return "it failed (#{status.exitstatus}): #{error.lines.first.to_s.strip}" unless done

      wall, user, system, memory = figures.map(&:to_f)
      { "wall" => wall, "cpu" => user + system, "memory" => memory * 1024 }
    end
  end

  # Queries for sheap, as Ruby.
  COUNT = "puts(Sheap::Heap.new(ARGV.fetch(0)).objects.count)"
  REFERRERS = "puts(Sheap::Heap.new(ARGV.fetch(0)).inverse_references.size)"

  module_function

  # @return [Array<Peer>]
  def all
    reap = program("reap")
    harb = program("harb")
    gem = "gem install sheap, or SHEAP=its checkout"
    [
      Peer.new(name: "reap", command: reap && ->(path) { [reap, path] },
        advice: "cargo install reap, or REAP=its executable"),
      Peer.new(name: "heapy, sizes by line", command: heapy,
        advice: "gem install heapy, or HEAPY=its executable or checkout"),
      Peer.new(name: "sheap, objects", command: sheap(COUNT), advice: gem),
      Peer.new(name: "sheap, referrers", command: sheap(REFERRERS), advice: gem),
      Peer.new(name: "harb, objects", command: harb && ->(path) { [harb, path] }, input: "quit\n",
        advice: "HARB=its executable")
    ]
  end

  # The path in a variable, or the executable on PATH.
  def program(name)
    named = ENV[name.upcase].to_s
    return named unless named.empty?

    places = ENV.fetch("PATH").split(File::PATH_SEPARATOR).map { |place| File.join(place, name) }
    places.find { |place| File.executable?(place) && !File.directory?(place) }
  end

  def heapy
    place = program("heapy") or return
    command = [place]
    command = [RbConfig.ruby, "-I", "#{place}/lib", "#{place}/bin/heapy"] if File.directory?(place)
    ->(path) { [*command, "read", path, "all"] }
  end

  def sheap(code)
    checkout = ENV["SHEAP"].to_s
    return if checkout.empty? && Gem::Specification.find_all_by_name("sheap").empty?

    library = checkout.empty? ? [] : ["-I", "#{checkout}/lib"]
    ->(path) { [RbConfig.ruby, *library, "-rsheap", "-e", code, path] }
  end
end
