# frozen_string_literal: true

require "forwardable"
require "tmpdir"
require_relative "../control/client"
require_relative "../native"
require_relative "../printable"
require_relative "../signal/settings"

module Memprof
  module CLI
    # A running process, seen from outside: how to reach it, and where its dumps are. Without /proc, as
    # on macOS, it is assumed to be like this one.
    class Target
      extend Forwardable

      attr_reader :pid

      # `inner_pid` is its process id as it sees it itself.
      def_delegators :@facts, :stopped?, :threads, :inner_pid

      def initialize(pid)
        @pid = pid
        @facts = ProcessFacts.new(pid)
      end

      def check
        Process.kill(0, pid)
        raise Errno::ESRCH if @facts.zombie?
      end

      def running?
        check
        true
      rescue Errno::EPERM
        true
      rescue SystemCallError
        false
      end

      def stopped? = @facts.stopped?

      # What is asked of a stopped process would be done when no command waits for it any more.
      def refuse_stopped
        raise UsageError, "process #{pid} is stopped, until it gets SIGCONT" if stopped?
      end

      def name = @facts.name || "process"

      def signal
        settings = OnSignal::Settings
        settings.catchable(@facts.environment(settings::SIGNAL).to_s) || settings::DEFAULT_SIGNAL
      end

      def answers_signal?
        handled = @facts.handled_signals
        return true unless handled

        handled[Signal.list.fetch(signal) - 1] == 1 && (signal == "URG" || @facts.loaded?("memprof."))
      end

      def answers?
        client = connect
        client&.close
        !client.nil? || answers_signal?
      end

      def send_signal = Process.kill(signal, pid)

      def connect
        directories.each do |directory|
          client = Control::Client.connect(Control::Address.path(directory, @facts.inner_pid),
            pid: pid, uid: @facts.uid)
          return client if client
        end
        nil
      end

      def ruby? = Native.respond_to?(:ruby_version_of) && Native.ruby_version_of(pid).size == 1

      # Where it keeps temporary files, as it sees it.
      def temporary_directory
        temporary_variables.find { |path| path.start_with?("/") && File.directory?(outside(path)) } || "/tmp"
      end

      def descendants = @facts.descendants.map { |child| Target.new(child) }

      def outside(path) = "#{@facts.root}#{path}"

      # The same for people: a root that this command holds open has that name only here.
      def shown(path)
        held = @facts.root.start_with?("/proc/self/") && path.delete_prefix(@facts.root)
        Printable.line(held && held != path ? "/proc/#{pid}/root#{held}" : path)
      end

      def dumps
        prefix = "memprof-#{@facts.inner_pid}-"
        paths = directories.flat_map { |directory| children(directory, prefix) }
        paths.select { |path| ours?(path) }
      end

      # Whether the process itself wrote a file. Anybody may put a file into a world-writable directory.
      def ours?(path)
        stat = File.lstat(path)
        stat.file? && (@facts.uid.nil? || stat.uid == @facts.uid)
      rescue SystemCallError
        false
      end

      private

      # The environment that the process was started with may not be the one it has now.
      def directories
        settings = OnSignal::Settings::DIRECTORY
        given = [@facts.environment(settings), ENV.fetch(settings, nil)]
        spare = OnSignal::Settings::SHARED_MEMORY
        paths = [*given, *temporary_variables, "/tmp", Dir.tmpdir, spare].compact.reject(&:empty?)
        paths.uniq.map { |path| outside(path) }
      end

      def temporary_variables = %w[TMPDIR TMP TEMP].filter_map { |name| @facts.environment(name) }

      def children(directory, prefix)
        Dir.children(directory).grep(/\A#{prefix}\d/).map { |name| File.join(directory, name) }
      rescue SystemCallError
        []
      end
    end
  end
end
