# frozen_string_literal: true

module Memprof
  module Agent
    # The memory of the cgroups that this process is in, of version 2 or 1. Reading it takes some tens of
    # microseconds.
    class Cgroup
      # Version 1 has no word for "no limit", but a number close to the largest.
      NO_LIMIT = 1 << 60
      FILES = {
        2 => { limit: "memory.max", used: "memory.current", idle: "inactive_file" },
        1 => { limit: "memory.limit_in_bytes", used: "memory.usage_in_bytes", idle: "total_inactive_file" }
      }.freeze
      SELF = "/proc/self/cgroup"
      ROOT = "/sys/fs/cgroup"
      PRESSURE = "memory.pressure"
      SYSTEM_PRESSURE = "/proc/pressure/memory"
      # `processes` are the ids of a cgroup's processes.
      State = Struct.new(:used, :limit, :directory) do
        def share = Rational(used, limit)
        def free = [limit - used, 0].max
      end
      private_constant :NO_LIMIT, :FILES, :SELF, :ROOT, :PRESSURE, :SYSTEM_PRESSURE

      def initialize(memberships: SELF, root: ROOT, system_pressure: SYSTEM_PRESSURE)
        @root = root
        @system_pressure = system_pressure
        @directories = read(memberships).to_s.each_line.flat_map { |line| directories(line.chomp) }
      end

      # The cgroup that is closest to its limit; nil without a limit.
      def state = @directories.filter_map { |directory, files| state_of(directory, files) }.max_by(&:share)

      # Share of the last ten seconds, in percent, in which some process waited for memory; nil if unknown.
      def pressure
        paths = @directories.map { |directory, _| File.join(directory, PRESSURE) }.first(1)
        [*paths, @system_pressure].each do |path|
          average = read(path).to_s[/^some avg10=(\d+(?:\.\d+)?)/, 1]
          return average.to_f if average
        end
        nil
      end

      # Ids of the processes in a cgroup itself, without those of its children.
      def processes(directory)
        read(File.join(directory, "cgroup.procs")).to_s.split.map(&:to_i).reject(&:zero?)
      end

      private

      # A cgroup and its ancestors. In a container the path may exist only on the host: then the root is left.
      def directories(line)
        _, controllers, path = line.split(":", 3)
        return [] if path.nil? || path.split("/").include?("..")

        root, version =
          if controllers.empty?
            [@root, 2]
          elsif controllers.split(",").include?("memory")
            [File.join(@root, "memory"), 1]
          else
            return []
          end
        parts = path.split("/").reject(&:empty?)
        parts.size.downto(0).map { |size| [File.join(root, *parts.first(size)), FILES[version]] }
      end

      # Files that were not used for a while are dropped before a process is killed.
      def state_of(directory, files)
        limit = number(directory, files[:limit]) or return
        used = number(directory, files[:used]) or return
        return if limit >= NO_LIMIT || limit.zero?

        idle = read(File.join(directory, "memory.stat")).to_s[/^#{files[:idle]} (\d+)/, 1].to_i
        State.new([used - idle, 0].max, limit, directory)
      end

      # Nil if the file has a word, such as "max".
      def number(directory, name) = Integer(read(File.join(directory, name)).to_s.strip, 10, exception: false)

      def read(path)
        File.read(path)
      rescue SystemCallError
        nil
      end
    end
  end
end
