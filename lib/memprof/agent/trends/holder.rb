# frozen_string_literal: true

require "json"
require "rbconfig"
require_relative "../../clock"
require_relative "../../native"
require_relative "../../errors"
require_relative "../cgroup"

module Memprof
  module Agent
    class Trends
      # What retains the objects of a leak, according to one copy of this process. The process is paused only
      # for the fork; another Ruby reads the copy's dump from a pipe, so neither memory nor time of this
      # process is used.
      module Holder
        LIBRARY = File.expand_path("../../..", __dir__)
        # Seconds for dump and answer.
        PATIENCE = 60
        STEP = 0.05
        # The free memory that a copy and its reader may need, as a multiple of this process's RSS.
        ROOM = 1.0
        # A path is named if it retains this share of what the site has, and no other path half as much.
        SHARE = 0.5
        PATHS = 20
        PROGRAM = "require \"memprof\"; require \"memprof/agent/trends/holder\"; " \
                  "Memprof::Agent::Trends::Holder.answer($stdin, $stdout, *ARGV)"
        private_constant :LIBRARY, :PATIENCE, :STEP, :ROOM, :SHARE, :PATHS, :PROGRAM

        class << self
          # The path that retains the objects of a class allocated at a line, of which this process has about
          # so many bytes; nil if it is unknown, or there is no room for a copy.
          def find(file, line, class_name, bytes)
            return unless room?

            copy([file, line, class_name, bytes.round].map(&:to_s))
          rescue Error, SystemCallError, IOError, JSON::ParserError
            nil
          end

          # In the other Ruby.
          def answer(input, output, file, line, class_name, bytes)
            input.binmode
            path = path_in(Memprof::Heap.read(input), "#{file}:#{line}", class_name, Integer(bytes))
            output.write(JSON.generate({ path: path }))
          end

          # The path in a heap that retains most of the class's bytes.
          def path_in(heap, place, class_name, bytes)
            quoted = Heap::QueryText.method(:quoted)
            is_class = "class = #{quoted.call(class_name)}"
            # If the program tracks allocations, those of the site are known, but perhaps only a sample.
            rows = paths(heap, "site = #{quoted.call(place)} and #{is_class}")
            least = rows.sum { |row| row[:size] } * SHARE
            if rows.empty?
              rows = paths(heap, is_class)
              least = bytes * SHARE
            end
            first, second = rows.max_by(2) { |row| row[:size] }
            return if first.nil? || first[:size] < least
            return if second && second[:size] > first[:size] * SHARE

            Wording.phrase(first[:retained_by])
          end

          # Bytes that this process may still use; nil if that is unknown.
          def free_memory
            system = File.read("/proc/meminfo")[/^MemAvailable:\s+(\d+) kB/, 1]
            [system && system.to_i * 1024, Cgroup.new.state&.free].compact.min
          rescue SystemCallError
            nil
          end

          private

          def room?
            free = free_memory
            !free.nil? && free >= ROOM * File.read("/proc/self/statm").split[1].to_i * 4096
          rescue SystemCallError
            false
          end

          def paths(heap, where) = heap.merged_paths(where: where, limit: PATHS)[:rows]

          def copy(arguments)
            reader, writer = IO.pipe
            answers, answer = IO.pipe
            pid = spawn_reader(reader, answer, arguments)
            [reader, answer].each(&:close)
            watch = Thread.new { limit(pid) }
            watch.report_on_exception = false
            Dump.stream(writer, Dump::Options.new(format: :binary, values: :none))
            text = answers.read
            JSON.parse(text)["path"] unless text.empty?
          ensure
            [reader, writer, answers, answer].compact.each(&:close)
            finish(pid, watch) if pid
          end

          # Without the program's own options for Ruby: the agent would start there, too.
          def spawn_reader(input, output, arguments)
            clean = { "RUBYOPT" => nil, "MEMPROF_AGENT" => "off", "RUBYLIB" => nil }
            Process.spawn(clean, RbConfig.ruby, "-I#{LIBRARY}", "-e", PROGRAM, "--", *arguments,
              in: input, out: output, err: File::NULL, pgroup: true)
          end

          def limit(pid)
            sleep(PATIENCE)
            Process.kill(:KILL, pid)
          end

          def finish(pid, watch)
            watch&.kill
            Process.kill(:KILL, pid)
            Process.wait(pid)
          rescue Errno::ESRCH, Errno::ECHILD
            nil # the program waited for all of its children
          end
        end
      end
    end
  end
end
