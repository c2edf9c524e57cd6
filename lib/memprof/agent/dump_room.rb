# frozen_string_literal: true

require_relative "../units"

module Memprof
  module Agent
    # Whether a heap dump can be written as evidence without doing harm: whether disk and memory have room for
    # it, and whether this process is the one to dump.
    class DumpRoom
      # A dump without values takes a few bytes per slot, and a little more than its values with them.
      BYTES_PER_SLOT = 32
      LEAST_DISK = 64 << 20
      # A forked child shares memory with this process until one of the two writes to it: while it works, the
      # program changes a part of its pages.
      CHANGED = 8
      LEAST_MEMORY = 32 << 20
      MEMORY = "/proc/meminfo"
      private_constant :BYTES_PER_SLOT, :LEAST_DISK, :CHANGED, :LEAST_MEMORY, :MEMORY

      def initialize(limits, cgroup:, meminfo: MEMORY)
        @limits = limits
        @cgroup = cgroup
        @meminfo = meminfo
      end

      # Why nothing is dumped into a directory; nil if there is room.
      def refusal(directory, resident: @limits.resident)
        larger = larger_process(resident)
        return "process #{larger} of this program is larger" if larger

        lack("disk", free_disk(directory), needed_disk) ||
          lack("memory", free_memory, needed_memory(resident))
      end

      # Whether memory has room for a forked child.
      def memory? = lack("memory", free_memory, needed_memory(@limits.resident)).nil?

      private

      def lack(name, free, needed)
        return "free #{name} is unknown" unless free && needed

        "#{Units.bytes(free)} of #{name} are free, and #{Units.bytes(needed)} are needed" if free < needed
      end

      def needed_disk = LEAST_DISK + GC.stat(:heap_live_slots) * BYTES_PER_SLOT
      def needed_memory(resident) = resident && LEAST_MEMORY + resident / CHANGED

      def free_disk(directory)
        Native.free_space(directory)
      rescue SystemCallError
        nil
      end

      # What the cgroup and the machine both allow.
      def free_memory
        available = File.read(@meminfo)[/^MemAvailable:\s+(\d+) kB/, 1]
        [@limits.free, available && available.to_i * 1024].compact.min
      rescue SystemCallError
        @limits.free
      end

      # Of the processes in a cgroup that run the same program, the largest is worth a dump.
      def larger_process(resident)
        directory = @cgroup.state&.directory or return
        program = File.readlink("/proc/self/exe")
        @cgroup.processes(directory).find do |pid|
          next if pid == Process.pid

          File.readlink("/proc/#{pid}/exe") == program && size_of(pid) > resident
        rescue SystemCallError
          false # it has ended, or is another user's
        end
      rescue SystemCallError
        nil
      end

      def size_of(pid) = File.read("/proc/#{pid}/statm").split[1].to_i * Etc.sysconf(Etc::SC_PAGESIZE)
    end
  end
end
