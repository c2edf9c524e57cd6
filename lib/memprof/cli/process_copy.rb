# frozen_string_literal: true

require "json"
require_relative "../native"
require_relative "../process_copying"

module Memprof
  module CLI
    # Asks a copy of a process, made for this question by one of its threads: the process itself loads
    # nothing, and is paused for some milliseconds. The copy loads our library and answers. Neither needs a
    # file that the other can name.
    class ProcessCopy
      include ProcessCopying

      STUCK = 3 # seconds without CPU time
      PATIENT = 5 # copies before one may abandon other threads' resources
      GLANCE = 0.1
      private_constant :STUCK, :PATIENT, :GLANCE

      # Total pause of the process, in seconds.
      attr_reader :pause

      attr_reader :attempts

      def initialize(target)
        @target = target
        @pause = 0.0
        @attempts = 0
        @unfit = []
      end

      # The Ruby version of the process, such as "3.3.8".
      def ruby_version
        @ruby_version ||= begin
          refuse(:system, "only on Linux") unless Native.respond_to?(:ruby_version_of)
          found, why = Native.ruby_version_of(@target.pid)
          raise UsageError, "process #{@target.pid} runs no Ruby" if found == :missing

          found.is_a?(Symbol) ? refuse(found, why) : found
        end
      end

      # The local path of memprof's library for that version.
      def library = library_for(ruby_version)

      # Sends a request, and returns the answer. The copy's output goes to `output`, up to `limit` bytes. The
      # block is called periodically.
      def ask(request, seconds:, output: nil, limit: 0, &progress)
        library = self.library
        deadline = Clock.now + seconds
        busy = 0
        stuck = false
        loop do
          again(output) if @attempts.positive?
          request = request.merge(alone: busy > PATIENT || stuck)
          kind, answer = attempt(library, request, output, limit, deadline, &progress)
          return answer if kind == :answer

          busy += 1 if kind == :busy
          stuck = true if kind == :stuck
          refuse(kind, answer) unless again?(kind, @attempts)
        end
      end

      private

      def attempt(library, request, output, limit, deadline, &progress)
        thread = next_thread
        @attempts += 1
        output &&= [output.fileno, limit]
        Native.snapshot([@target.pid, @target.held], thread, library, JSON.generate(request), output)
        kind, copy = next_of_tracer
        unless kind.is_a?(Symbol)
          @pause += kind
          kind, copy = wait(Work.new(copy), deadline, &progress)
        end
        @unfit << thread if kind == :no_ruby
        [kind, copy]
      ensure
        Native.drop_snapshot
      end

      # Discards the incomplete dump of a copy that ended early.
      def again(output)
        output&.truncate(0)
        output&.rewind
      rescue SystemCallError, IOError
        raise Error, "the copy of process #{@target.pid} ended before its dump was complete"
      end

      # Threads that run no Ruby, or another Ractor, only if there is no other.
      def next_thread
        threads = @target.threads
        fit = threads - @unfit
        fit = threads if fit.empty?
        fit[@attempts % fit.size]
      end

      def wait(work, deadline)
        loop do
          text, why = Native.wait_for_tracer(GLANCE)
          return text, why if text.is_a?(Symbol)
          return parse(text) if text
          return :stuck, "the copy waits for a lock" if work.seconds_idle > STUCK
          raise UsageError,
            "the copy of process #{@target.pid} did not answer in time (--timeout)" if Clock.now > deadline

          yield if block_given?
        end
      end

      # The process may make the copy answer anything.
      def parse(text)
        answer = JSON.parse(text)
        return :died, "its answer cannot be read" unless answer.is_a?(Hash)
        raise UsageError, "process #{@target.pid}: #{Printable.line(answer["error"])}" if answer["error"]
        return :busy, answer["busy"] if answer["busy"]
        return :no_ruby, answer["unfit"] if answer["unfit"]

        [:answer, answer]
      rescue JSON::ParserError
        [:died, "its answer cannot be read"]
      end

      # Another Ruby version needs a library that reads its structs.
      def library_for(version)
        minor = version[/\A\d+\.\d+/]
        raise UsageError, "process #{@target.pid} runs Ruby #{version}, whose heap is unsafe to walk; " \
                          "use 3.2.3 or later" if %w[3.2.0 3.2.1 3.2.2].include?(version)

        ours = $LOADED_FEATURES.find { |path| path.match?(%r{/memprof/(?:\d\.\d/)?memprof\.[a-z]+\z}) }
        return ours if minor == RUBY_VERSION[/\A\d+\.\d+/]

        other = File.expand_path("../#{minor}/#{File.basename(ours)}", __dir__)
        return other if File.file?(other)

        raise UsageError, "process #{@target.pid} runs Ruby #{version}, and this memprof has libraries for " \
                          "#{versions(ours).join(", ")}: run the memprof of that Ruby"
      end

      # The Ruby versions that this memprof has a library for.
      def versions(ours)
        others = Dir[File.expand_path("../[0-9]*/#{File.basename(ours)}", __dir__)]
        own = RUBY_VERSION[/\A\d+\.\d+/]
        [own, *others.map { |path| File.basename(File.dirname(path)) }].uniq.sort
      end

      def refuse(kind, why)
        raise Error, "cannot write the dump: #{why}" if kind == :output

        raise UsageError, "process #{@target.pid}: #{remedy(kind, why)}"
      end

      # Whether a process is working.
      class Work
        def initialize(pid)
          @path = "/proc/#{pid}/stat"
          @since = Clock.now
        end

        def seconds_idle
          state, ticks = now
          @since = Clock.now if ticks != @ticks || state != "S"
          @ticks = ticks
          Clock.now - @since
        end

        private

        # State, and CPU time in clock ticks.
        def now
          fields = File.read(@path)[/\) (.*)/m, 1].to_s.split
          [fields[0], fields.values_at(11, 12).sum(&:to_i)]
        rescue SystemCallError
          []
        end
      end
      private_constant :Work
    end
  end
end
