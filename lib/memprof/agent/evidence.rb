# frozen_string_literal: true

require_relative "../dump"
require_relative "../loading"
require_relative "directory"
require_relative "dump_room"

module Memprof
  module Agent
    # What is written when memory reaches its limit, before the process may be killed: the reports of the last
    # intervals, the ledger of RSS, and a heap dump if there is room for one. Each file is on the disk before
    # the next is begun, the smallest first.
    class Evidence
      # Files of one occasion are in a directory of their own.
      NAME = /\Alimit-\d{8}T\d{6}Z-\d+\z/
      REPORTS = 3
      LOCK = "dump.lock"
      private_constant :NAME, :REPORTS, :LOCK

      # The files that were written, the reason why there is no dump (nil if there is one, or if none was
      # wanted), and other failures.
      Outcome = Struct.new(:directory, :paths, :no_dump, :failures) do
        def to_s
          written = paths.map { |path| File.basename(path) }
          written = written.empty? ? "nothing was written" : "wrote #{written.join(", ")} to #{directory}"
          [written, ("no heap dump: #{no_dump}" if no_dump), *failures.uniq].compact.join("; ")
        end
      end

      def initialize(settings, limits:, cgroup:, ledger:, room: DumpRoom.new(limits, cgroup: cgroup))
        @directory = Directory.new(settings[:directory])
        @keep = settings[:keep]
        @dump = settings[:dump]
        @values = settings[:values]
        @ledger = ledger
        @room = room
      end

      # Writes what it can; returns an Outcome.
      def write(reason, intervals:, labels:)
        outcome = Outcome.new(@directory.path, [], nil, [])
        prepare(outcome) or return outcome
        files(reason, intervals, labels).each do |name, content|
          attempt(outcome) { outcome.paths << @files.write(name) { |file| file.write(content.call) } }
        end
        dump(outcome) if @dump
        outcome
      end

      private

      def prepare(outcome)
        attempt(outcome) do
          Loading.json
          @directory.prepare
          remove_oldest
          name = "limit-#{Time.now.utc.strftime("%Y%m%dT%H%M%SZ")}-#{Process.pid}"
          @files = @directory.subdirectory(name)
          outcome.directory = @files.path
        end
      end

      # Those written, and room for one more.
      def remove_oldest
        names = Dir.children(@directory.path).grep(NAME).sort
        names.first([names.size - @keep + 1, 0].max).each do |name|
          Directory.new(File.join(@directory.path, name)).remove
        end
      end

      def files(reason, intervals, labels)
        about = { format: "memprof-evidence", version: 1, reason: reason, time: Time.now.to_f,
                  memprof: VERSION, ruby: RUBY_DESCRIPTION, labels: labels,
                  intervals: intervals.map(&:to_h) }
        reports = intervals.last(REPORTS).reverse.each_with_index.to_h do |interval, ago|
          [ago.zero? ? "report.json" : "report-#{ago}.json", -> { interval.report.to_json }]
        end
        { "about.json" => -> { JSON.generate(about) }, "memory.json" => -> { ledger } }.merge(reports)
      end

      def ledger
        memory = @ledger.measure or raise Error, "the ledger of RSS is unknown"
        memory.to_json
      end

      # Returns whether that worked.
      def attempt(outcome)
        yield
        true
      rescue StandardError => e
        outcome.failures << reason(e)
        false
      end

      # Whatever fails, the rest is written.
      def reason(error)
        message = error.message.lines.first.to_s.chomp
        error.is_a?(Error) ? message : "#{message} (#{error.class})"
      end

      def dump(outcome)
        outcome.no_dump = alone { @dump == :auto ? @room.refusal(@files.path) : nil }
        return if outcome.no_dump

        path = File.join(@files.path, "heap.memprof")
        Memprof.dump_all(path, values: @values, fork: @dump == :auto || @room.memory?)
        @files.settle("heap.memprof")
        outcome.paths << path
      rescue StandardError => e
        outcome.no_dump = reason(e)
      ensure
        @lock&.close
        @lock = nil
      end

      # Not two processes at once: each dump takes memory. Returns the reason for no dump.
      def alone
        path = File.join(@directory.path, LOCK)
        @lock = File.open(path, File::RDWR | File::CREAT | File::NOFOLLOW | File::NONBLOCK, 0o600)
        return "another process is writing one" unless @lock.flock(File::LOCK_EX | File::LOCK_NB)

        yield
      end
    end
  end
end
