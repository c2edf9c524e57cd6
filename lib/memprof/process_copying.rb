# frozen_string_literal: true

require_relative "clock"

module Memprof
  # Retries and remedies for a process that could not be copied.
  module ProcessCopying
    # The moment may be a bad one: during a GC, while another thread has a lock, or while another command
    # traces the process.
    ATTEMPTS = 30
    AGAIN = %i[died busy collecting no_ruby stuck traced].freeze
    REMEDIES = {
      forbidden: "tracing it is not permitted: run memprof as root, or set " \
                 "/proc/sys/kernel/yama/ptrace_scope to 0",
      traced: "a debugger or strace traces it: end that first",
      filtered: "its seccomp filter might kill it for what memprof has it do: run memprof as root outside " \
                "of containers, or in a privileged one (docker run --privileged, kubectl debug " \
                "--profile sysadmin)",
      foreign: "it runs code of another architecture than this memprof",
      gone: "it ended"
    }.freeze
    FOREIGN = "it belongs to another user; run memprof as that user, or as root"
    # Root has it everywhere but in containers, which only get some capabilities.
    INCAPABLE = "tracing it takes the capability SYS_PTRACE, which this container lacks: docker run " \
                "--cap-add SYS_PTRACE; in Kubernetes securityContext.capabilities.add: [SYS_PTRACE], or " \
                "kubectl debug --profile general"
    SYS_PTRACE = 19
    GLANCE = 0.1
    SILENCE = 60 # seconds within which the tracing process must report
    private_constant :ATTEMPTS, :AGAIN, :REMEDIES, :FOREIGN, :INCAPABLE, :SYS_PTRACE, :GLANCE, :SILENCE

    private

    # The next message of the tracing process. Yields meanwhile.
    def next_of_tracer
      deadline = Clock.now + SILENCE
      loop do
        found = Native.wait_for_tracer(GLANCE)
        return found if found
        return [:system, "it cannot be stopped"] if Clock.now > deadline

        yield if block_given?
      end
    end

    # Whether to try again. Waits before that, longer each time.
    def again?(kind, attempts)
      return false unless AGAIN.include?(kind) && attempts < ATTEMPTS

      sleep(0.001 * attempts)
      true
    end

    def remedy(kind, why, pid = nil)
      return FOREIGN if kind == :forbidden && foreign?(pid)
      return INCAPABLE if kind == :forbidden && incapable?

      REMEDIES.fetch(kind, why)
    end

    def incapable?
      Process.euid.zero? && File.read("/proc/self/status")[/^CapEff:\s+(\h+)/, 1].to_i(16)[SYS_PTRACE].zero?
    end

    # Root may lack the permission, too.
    def foreign?(pid)
      return false if pid.nil? || Process.euid.zero?

      File.read("/proc/#{pid}/status")[/^Uid:\s+(\d+)/, 1].to_i != Process.uid
    end
  end
end
