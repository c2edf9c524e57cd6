# frozen_string_literal: true

require "fileutils"
require "json"
require_relative "heap"
require_relative "output"
require_relative "printable"
require_relative "library/entry"
require_relative "library/part"

module Memprof
  # Dumps stored in a directory, each with a name, its application, and what the dump says about its process.
  # `memprof --pid PID --name NAME` and uploads add dumps, `memprof web --library` shows them.
  #
  # A dump is `NUMBER-APPLICATION.ENDING`, next to `NUMBER.about.json`. Both are written atomically, with mode
  # 0600. Several processes may use one library: a process that changes it holds its lock.
  class Library
    include Enumerable

    VARIABLE = "MEMPROF_LIBRARY"
    LOCK = ".lock"
    # Limits for the uncompressed size of a dump that has a size limit: so many times its size, which no usual
    # dump reaches, plus room for a few large Strings.
    UNPACKED_TIMES = 100
    UNPACKED_BYTES = 1024**3
    private_constant :LOCK, :UNPACKED_TIMES, :UNPACKED_BYTES

    # The library is full: existing dumps are never deleted to make room.
    class Full < Error; end

    # A dump is too large.
    class TooLarge < Error; end

    # A dump is truncated.
    class Truncated < Error; end

    def self.default_directory(env = ENV)
      given, data, home = [VARIABLE, "XDG_DATA_HOME", "HOME"].map { |name| env[name].to_s }
      return File.expand_path(given) unless given.empty?
      return File.join(data, "memprof") if data.start_with?("/")
      return File.join(home, ".local/share/memprof") if home.start_with?("/")

      raise Error, "no directory for stored dumps: set #{VARIABLE}"
    end

    attr_reader :directory, :max_size

    def initialize(directory, max_size: nil)
      @directory = File.expand_path(directory)
      @max_size = max_size
      FileUtils.mkdir_p(@directory, mode: 0o700)
      Part.remove_left(@directory)
      locked {} # complains about a directory that can't be written
    rescue SystemCallError => e
      raise Error, "cannot store dumps in #{directory}: #{Output.reason(e)}"
    end

    def each(&block) = Entry.all(@directory).sort_by { |entry| -entry.number }.each(&block)

    def find(number)
      super() { |entry| entry.number == number }
    end

    def size
      names = Dir.children(@directory).grep_v(Part::UNFINISHED_INDEX)
      names.sum { |name| bytes(File.join(@directory, name)) }
    end

    def room = @max_size && [@max_size - size, 0].max

    # Adds a dump: first as an unnamed file, which gets its name once it is known to be a dump. With `whole`,
    # a truncated one is refused.
    def take(app:, name: nil, limit: nil, facts: {}, whole: false, progress: nil)
      Part.open(@directory, limit: limit, room: room) do |part|
        yield(part)
        part.finish
        heap = heap_of(part, limit, &progress)
        raise Truncated, "the dump is truncated, so it was not stored" if whole && heap.source[:truncated]

        about = Entry.about(heap, part.size, app: app, name: name, facts: facts)
        locked { keep(part, about) }
      end
    end

    def rename(number, name, app: nil) = locked { find(number)&.rename(name, app) }

    def delete(number)
      locked do
        found = find(number)
        found&.delete
        !found.nil?
      end
    end

    private

    # Compression turns gigabytes into a few megabytes, and reading them needs as much memory.
    def heap_of(part, limit, &progress)
      most = UNPACKED_BYTES + UNPACKED_TIMES * part.size if limit
      Memprof::Heap.open(part.path, max_bytes: most, &progress)
    rescue DumpTooLarge => e
      raise TooLarge, "this dump is too large: #{e.message.delete_prefix("cannot read #{part.path}: ")}"
    end

    # Numbers are times in milliseconds since 1970 that no other dump has.
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
      0 # deleted in between
    end
  end
end
