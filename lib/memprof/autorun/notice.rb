# frozen_string_literal: true

module Memprof
  module Autorun
    # A tracked process's message to `memprof run`: a small file named by its process id, in a directory of
    # the run, with a `name=value` on each line. It is replaced atomically, so it can be read at any time.
    class Notice
      # The reason why a process that waited for its boot has no report.
      NOT_BOOTED = "there was no request, example, test, job or task, and no call of Memprof.booted"

      # Set in a forked child: its notice no longer belongs to a Ruby that `memprof run` started.
      attr_writer :forked

      def initialize(directory, parent)
        @directory = directory
        @parent = parent
        @forked = false
      end

      # `waiting` means that the process has not booted yet.
      def post(state = nil, allocated: nil, reports: [], waiting: false)
        return unless @directory && File.directory?(@directory)

        lines = ["label=#{Printable.line($PROGRAM_NAME)}"]
        lines << "allocated=#{allocated}" if allocated
        lines << "#{state}=true" if state
        lines << "forked=true" if @forked
        lines << "waiting=true" if waiting
        lines.concat(reports.map { |path| "report=#{path}" })
        Output.write(path(Process.pid), lines.map(&:b).join("\n"))
        remove if state == "ended" && abandoned?
      end

      # Renames the notice of this process's previous id. `memprof run` may look at any time, and must see one
      # of the two.
      def follow(pid)
        File.rename(path(pid), path(Process.pid)) if @directory
      rescue SystemCallError
        nil # removed: the next one is posted again
      end

      private

      def remove
        File.unlink(path(Process.pid))
        Dir.rmdir(@directory)
      rescue SystemCallError
        nil # removed already, or not empty
      end

      def path(pid) = File.join(@directory, pid.to_s)

      # A background server ends long after the process that started it.
      def abandoned?
        return false unless @parent

        Process.kill(0, @parent)
        false
      rescue SystemCallError
        true
      end
    end
  end
end
