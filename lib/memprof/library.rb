# frozen_string_literal: true

require "fileutils"
require "json"
require_relative "heap"
require_relative "output"
require_relative "printable"
require_relative "library/entry"
require_relative "library/part"

module Memprof
  # Dumps that are kept in a directory, each with a name, the application that it is of, and what the dump
  # says of its process. `memprof --pid PID --name NAME` and uploads put them there, `memprof web --library`
  # shows them.
  #
  # A dump is `NUMBER-APPLICATION.ENDING`, beside it is `NUMBER.about.json`. Both appear whole or not at all,
  # with mode 0600. Several processes may use one library: whoever changes it holds its lock.
  #
  # @api private
  class Library
    include Enumerable

    VARIABLE = "MEMPROF_LIBRARY"
    LOCK = ".lock"
    # What a dump that has a limit may become without its compression: so many times its size, which no usual
    # one reaches, and room for a few large Strings.
    UNPACKED_TIMES = 100
    UNPACKED_BYTES = 1024**3
    private_constant :LOCK, :UNPACKED_TIMES, :UNPACKED_BYTES

    # There is no room: what is there is never deleted for what comes.
    class Full < Error; end

    # One dump is too large.
    class TooLarge < Error; end

    # @param env [#[]] environment variables
    # @return [String] where dumps go if nobody says where
    # @raise [Memprof::Error] if there is no home directory either
    def self.default_directory(env = ENV)
      given, data, home = [VARIABLE, "XDG_DATA_HOME", "HOME"].map { |name| env[name].to_s }
      return File.expand_path(given) unless given.empty?
      return File.join(data, "memprof") if data.start_with?("/")
      return File.join(home, ".local/share/memprof") if home.start_with?("/")

      raise Error, "no place for a library: set #{VARIABLE} to a directory"
    end

    # @return [String]
    attr_reader :directory
    # @return [Integer, nil] bytes that all of it may take
    attr_reader :max_size

    # @param directory [String] it is made, for its owner alone, if it is not there
    # @param max_size [Integer, nil] bytes
    # @raise [Memprof::Error] if it can't be used
    def initialize(directory, max_size: nil)
      @directory = File.expand_path(directory)
      @max_size = max_size
      FileUtils.mkdir_p(@directory, mode: 0o700)
      Part.remove_left(@directory)
      locked {} # complains about a directory that can't be written
    rescue SystemCallError => e
      raise Error, "can't keep dumps in #{directory}: #{SystemCallError.new(nil, e.errno).message}"
    end

    # @yieldparam entry [Entry] the youngest first
    def each(&block)
      Entry.all(@directory).sort_by { |entry| -entry.number }.each(&block)
    end

    # @param number [Integer]
    # @return [Entry, nil]
    def find(number)
      super() { |entry| entry.number == number }
    end

    # @return [Integer] bytes that are taken: dumps, their indexes, what is being uploaded. An index that is
    #   being written does not count before it is whole
    def size
      names = Dir.children(@directory).grep_v(Part::UNFINISHED_INDEX)
      names.sum { |name| bytes(File.join(@directory, name)) }
    end

    # @return [Integer, nil] bytes that are left; nil if there is no limit
    def room
      @max_size && [@max_size - size, 0].max
    end

    # Takes in a dump: as a file without a name, which gets one when it is known to be a dump.
    #
    # @param app [String] the application, as its user calls it
    # @param name [String, nil] of the dump; that of the application if nil
    # @param limit [Integer, nil] bytes that the dump may have. Of a dump that has a limit, what
    #   it becomes without its compression is bounded, too
    # @param facts [Hash{Symbol => Object}] what the dump itself may not tell: `:host`, `:pid`
    # @param progress [Proc, nil] is told how far it is read, as {Heap.open} tells its block
    # @yieldparam part [Part] to be written to
    # @return [Entry]
    # @raise [TooLarge, Full]
    # @raise [InvalidDump] if it is none
    # @raise [Memprof::Error] if it can't be written
    def take(app:, name: nil, limit: nil, facts: {}, progress: nil)
      Part.open(@directory, limit: limit, room: room) do |part|
        yield(part)
        part.finish
        heap = heap_of(part, limit, &progress)
        about = Entry.about(heap, part.size, app: app, name: name, facts: facts)
        locked { keep(part, about) }
      end
    end

    # @param number [Integer]
    # @param name [String]
    # @param app [String, nil] another application; nil leaves it
    # @return [Entry, nil] nil if there is no such dump
    # @raise [Memprof::Error] if it can't be written
    def rename(number, name, app: nil)
      locked { find(number)&.rename(name, app) }
    end

    # @param number [Integer]
    # @return [Boolean] false if there is no such dump
    # @raise [Memprof::Error] if it can't be
    def delete(number)
      locked do
        found = find(number)
        found&.delete
        !found.nil?
      end
    end

    private

    # Compression makes gigabytes of a few megabytes, and who looks at them needs as much memory.
    def heap_of(part, limit, &progress)
      most = UNPACKED_BYTES + UNPACKED_TIMES * part.size if limit
      Memprof::Heap.open(part.path, max_bytes: most, &progress)
    rescue DumpTooLarge => e
      raise TooLarge, "this dump is too large: #{e.message.delete_prefix("can't read #{part.path}: ")}"
    end

    # Numbers are moments, in milliseconds since 1970, that no other dump has.
    def keep(part, about)
      raise Full, Part.full(@max_size) if @max_size && size > @max_size

      last = map(&:number).max || 0
      number = [Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond), last + 1].max
      Entry.create(@directory, number, about, part)
    end

    def locked
      path = File.join(@directory, LOCK)
      File.open(path, File::RDWR | File::CREAT | File::NOFOLLOW | File::NONBLOCK, 0o600) do |file|
        file.flock(File::LOCK_EX)
        yield
      end
    rescue SystemCallError => e
      raise Output.failure(path, e)
    end

    def bytes(path)
      stat = File.lstat(path)
      stat.file? ? stat.size : 0
    rescue Errno::ENOENT
      0 # gone in between
    end
  end
end
