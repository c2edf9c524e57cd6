# frozen_string_literal: true

require "forwardable"
require "tmpdir"
require_relative "../control/client"
require_relative "../native"
require_relative "../printable"
require_relative "../signal/settings"
require_relative "process_copy"

module Memprof
  module CLI
    # A running process, seen from outside: how to reach it, and where its dumps are. A descriptor pins it, so
    # that another process with a reused PID is not mistaken for it. Files that it names are opened by
    # {ForeignFiles}. Without /proc, as on macOS, it is assumed to be like this process.
    class Target
      extend Forwardable

      attr_reader :pid

      # `inner_pid` is its process id as the process itself sees it.
      def_delegators :@facts, :stopped?, :threads, :inner_pid, :resident, :address_space, :code, :environment,
        :uid

      def initialize(pid)
        @pid = pid
        @held = IO.for_fd(Native.hold_process(pid), "rb") if Native.respond_to?(:hold_process)
        @facts = ProcessFacts.new(pid)
      end

      # The descriptor that pins it; nil where unsupported.
      def held = @held&.fileno

      def check
        signal_with(0)
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

      # A stopped process would carry out a request only when no command waits for it any more.
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

        # A program may handle the signal itself.
        handled[Signal.list.fetch(signal) - 1] == 1 && @facts.loaded?("memprof.")
      end

      def answers?
        client = connect
        client&.close
        !client.nil? || answers_signal?
      end

      def send_signal = signal_with(Signal.list.fetch(signal))

      def connect
        directories.each do |directory|
          entry = @facts.files.entry(directory, Control::Address.name(@facts.inner_pid))
          client = entry&.connectable { |path| Control::Client.connect(path, pid: pid, uid: @facts.uid) }
          return client if client
        end
        nil
      end

      def ruby? = Native.respond_to?(:ruby_version_of) && Native.ruby_version_of(pid).size == 1

      # Whether its memory and files can't be read: then it is unknown whether it runs Ruby or has a socket.
      def forbidden? = Native.respond_to?(:ruby_version_of) && Native.ruby_version_of(pid).first == :forbidden

      def refuse_forbidden
        ProcessCopy.new(self).ruby_version if forbidden?
      end

      def descendants
        @facts.descendants.filter_map do |child|
          Target.new(child)
        rescue SystemCallError
          nil # it has ended since
        end
      end

      # The dumps that it has written, as {ForeignFiles::Entry}, without files of other users, who may write
      # to a world-writable directory.
      def dumps
        pattern = /\Amemprof-#{@facts.inner_pid}-\d/
        entries = directories.flat_map { |directory| @facts.files.entries(directory, pattern) }
        entries.select { |entry| ours?(entry.stat) }
      end

      # Whether it runs {Memprof::Agent}, by the name of that thread.
      def agent?
        require_relative "../agent/switch"
        @facts.thread?(Agent::Switch::THREAD)
      end

      # What is in a directory that the process names and has created itself: files, or directories.
      def created(directory, pattern)
        @facts.files.entries(directory, pattern).select do |entry|
          stat = entry.stat
          stat && (stat.file? || stat.directory?) && own?(stat)
        end
      end

      # Opens such a file.
      def open(entry)
        entry.open { |file| yield(file) if own?(file.stat) }
      end

      # Whether a file was written by the process itself.
      def ours?(stat)
        !stat.nil? && stat.file? && own?(stat)
      end

      private

      def own?(stat) = @facts.uid.nil? || stat.uid == @facts.uid

      # The process may have changed the environment that it was started with.
      def directories
        settings = OnSignal::Settings::DIRECTORY
        given = [@facts.environment(settings), ENV.fetch(settings, nil)]
        spare = OnSignal::Settings::SHARED_MEMORY
        paths = [*given, *temporary_variables, "/tmp", Dir.tmpdir, spare].compact
        paths.uniq.select { |path| path.start_with?("/") }
      end

      def temporary_variables = %w[TMPDIR TMP TEMP].filter_map { |name| @facts.environment(name) }

      def signal_with(number)
        @held ? Native.signal_process(@held.fileno, number) : Process.kill(number, pid)
      end
    end
  end
end
