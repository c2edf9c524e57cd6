# frozen_string_literal: true

require "digest"
require "memprof/dump"
require_relative "../heap_entry"

module Memprof
  class Web
    class Live
      # Dumps that an application's processes took of themselves, shared by all processes started in the same
      # directory. The oldest ones are deleted to make room.
      class Dumps
        include Enumerable

        KEPT = 5
        INDEX = ".memprof-index"
        SUFFIX = Memprof::Dump::InProgress::SUFFIX
        DIRECTORY = "MEMPROF_DIR"
        SOON = 15_000 # milliseconds until there is at least a file
        STALE = 60 # seconds
        private_constant :INDEX, :SUFFIX, :DIRECTORY, :SOON, :STALE

        # A complete dump. Its number is the time of its request, in milliseconds since 1970.
        Dump = Struct.new(:number, :pid, :path, :bytes) do
          def name = "#{time.strftime("%F %T")}, process #{pid}"

          def time = Time.at(Rational(number, 1000)).utc

          def facts
            { id: number, pid: pid, time: time.strftime("%F %T UTC"), size: bytes, path: path }
          end
        end

        # A dump being written, for the waiting page.
        Writing = Struct.new(:id, :name, :progress)

        def initialize(directory = nil, kept: KEPT)
          @directory = directory
          @kept = kept
          @lock = Mutex.new
          @failed = {}
        end

        def directory
          given = @directory || ENV.fetch(DIRECTORY, "")
          given.empty? ? Memprof::Dump::Spool.directory : File.expand_path(given)
        end

        def each(&block)
          all = named(pattern).filter_map do |match, path|
            bytes = size(path) and Dump.new(match[:number].to_i, match[:pid].to_i, path, bytes)
          end
          all.sort_by { |dump| -dump.number }.each(&block)
        end

        def find(number)
          super() { |dump| dump.number == number }
        end

        # Starts a dump: a forked child writes it while the program continues.
        def take
          @lock.synchronize do
            raise Conflict, "process #{Process.pid} is already writing a dump" if
              @thread&.alive?

            number = free_number
            path = File.join(directory, "#{prefix}-#{number}-#{Process.pid}.memprof")
            @failed.clear
            @number = number
            @thread = Thread.new { Native.quiet { write(number, path) } }
            @thread.name = "memprof: writes a dump"
            number
          end
        end

        def writing(number)
          match, path = named(pattern(SUFFIX)).find { |found, _| found[:number].to_i == number }
          written = match ? size(path) : starting(number)
          return unless written

          Writing.new(number, "the heap", Heaps::Entry::Progress.new(:dumping, written, nil))
        end

        # Those that are being written, by any process, with their bytes so far. A file that has not grown for
        # a while was left behind.
        def unfinished
          named(pattern(SUFFIX)).filter_map do |match, path|
            bytes = size(path)
            next unless bytes && Time.now - File.lstat(path).mtime < STALE

            { id: match[:number].to_i, pid: match[:pid].to_i, size: bytes }
          rescue SystemCallError
            nil # it has ended
          end
        end

        def failure(number) = @failed[number]

        def delete(number)
          dump = find(number) and remove(dump.path)
        end

        private

        def prefix
          "memprof-web-#{Digest::SHA256.hexdigest("#{Process.uid} #{Dir.pwd}")[0, 10]}"
        rescue SystemCallError # the directory is gone: a deployment has replaced it
          "memprof-web-#{Process.uid}"
        end

        def pattern(suffix = "")
          /\A#{prefix}-(?<number>\d{13})-(?<pid>\d+)\.memprof#{Regexp.escape(suffix)}\z/
        end

        def named(pattern)
          place = directory
          Dir.children(place).filter_map do |name|
            match = pattern.match(name) and [match, File.join(place, name)]
          end
        rescue SystemCallError
          []
        end

        # Counts only our own files: anyone may put one into a world-writable directory.
        def size(path)
          stat = File.lstat(path)
          stat.size if stat.file? && stat.owned?
        rescue SystemCallError
          nil
        end

        def free_number
          taken = [pattern, pattern(SUFFIX)].flat_map { |found| named(found) }
          last = taken.map { |match, _| match[:number].to_i }.max || 0
          [Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond), last + 1].max
        end

        # In progress, but without a file yet: here, or in another worker, whose state is unknown.
        def starting(number)
          return (0 if @thread&.alive?) if @number == number

          age = Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond) - number.to_i
          0 if age.abs < SOON && find(number).nil?
        end

        def write(number, path)
          Memprof.dump_all(path, fork: true)
          make_room
        rescue StandardError => e
          @failed[number] = e.is_a?(Error) ? e : Error.new("no dump: #{e.message}")
        end

        def make_room
          drop(@kept).each { |dump| remove(dump.path) }
          named(pattern(SUFFIX)).each { |_, path| Memprof::Dump::InProgress.remove_stale(path) }
        end

        def remove(path)
          [path, path + INDEX].each do |file|
            File.unlink(file)
          rescue Errno::ENOENT
            nil # another worker did it, or there was no index
          end
        end
      end
    end
  end
end
