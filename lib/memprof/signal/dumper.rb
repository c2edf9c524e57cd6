# frozen_string_literal: true

require_relative "../dump"

module Memprof
  module OnSignal
    # Makes the dumps of a process that were asked for from outside: one at a time, by a forked child, with a
    # thread that waits for the child.
    class Dumper
      def initialize(settings)
        @settings = settings
      end

      def options = @settings.options

      # Starts a dump, unless one is being written.
      def start(options = self.options, &block)
        return busy if writing?

        @warned = false
        path = @path = free_path(options.ending)
        @thread = OnSignal.thread("memprof dump") { Native.quiet { write(path, options, block) } }
        path
      end

      private

      # Not when the file has its name: all that is left to its thread is to say so.
      def writing? = @thread&.alive? && !Native.taken?(@path)

      def busy
        unless @warned
          @warned = true
          OnSignal.warn_user("process #{Process.pid}: a dump is being written already: #{@path}")
        end
        nil
      end

      # Whoever asked gets an answer in any case, also if this thread is ended. Then the child is, too, and
      # its file is gone (Dump::Child, Dump::InProgress).
      def write(path, options, block)
        outcome = Error.new("the thread that waited for it was ended")
        Dump::InProgress.sweep(File.dirname(path))
        outcome = Memprof.dump_all(path, fork: true, format: options.format, values: options.values,
          compression: options.compression)
      rescue StandardError => e
        outcome = e
      ensure
        report(outcome, block)
      end

      def report(outcome, block)
        if outcome.is_a?(Exception)
          OnSignal.warn_user("process #{Process.pid}: no dump: #{outcome.message.lines.first.to_s.chomp}")
        end
        block&.call(outcome)
      end

      def free_path(ending)
        base = File.join(@settings.directory, "memprof-#{Process.pid}-#{Time.now.to_i}")
        names = [base].each + (1..).lazy.map { |number| "#{base}-#{number}" }
        names.map { |name| "#{name}#{ending}" }.find { |path| free?(path) }
      end

      def free?(path) = [path, path + Dump::InProgress::SUFFIX].none? { |name| Native.taken?(name) }
    end
  end
end
