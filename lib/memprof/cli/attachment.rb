# frozen_string_literal: true

require "fileutils"
require "json"
require "securerandom"
require_relative "../native"
require_relative "../process_copying"

module Memprof
  module CLI
    # Has a process that has not loaded memprof load it, and do something. What is put into it from outside is
    # a line of Ruby, which its VM evaluates when it next looks for interrupts; all else goes over files.
    class Attachment
      include ProcessCopying

      GLANCE = 0.05
      AGAIN_AFTER = 0.2 # seconds in which the line may be evaluated, more each time
      LONGEST_WAIT = 2
      LINE = "::Process.pid==%<pid>d&&::Thread.new{begin;" \
             "::Thread.current[:memprof_attached]=%<directory>s;" \
             "::Kernel.load(%<boot>s);rescue ::Exception;end}"
      PATIENCE = 5 # seconds for the process to stop what it does
      private_constant :GLANCE, :AGAIN_AFTER, :LONGEST_WAIT, :LINE, :PATIENCE

      # The longest time in seconds for which its main thread was stopped.
      attr_reader :pause

      def initialize(target, library)
        @target = target
        @library = library
        @directory = File.join(target.temporary_directory, "memprof-#{SecureRandom.hex(8)}")
        @pause = 0.0
      end

      # Gives the answer. `seconds` is the time for the process to begin, `work` that for the rest.
      def run(request, seconds:, work:)
        prepare(request)
        get_started(seconds)
        await_answer(work)
      rescue Interrupt
        ended_early || raise
      ensure
        clean_up
      end

      private

      def outside(name) = File.join(@target.outside(@directory), name)

      def prepare(request)
        boot = File.join(@library, "memprof/attached/boot.rb")
        unless File.exist?(@target.outside(boot))
          raise UsageError, "process #{@target.pid} does not see #{@library}: install memprof where it runs"
        end

        Dir.mkdir(outside(""), 0o700)
        @made = true
        File.write(outside("request"), JSON.generate(request), perm: 0o600)
        chown_request
        @line = format(LINE, pid: @target.inner_pid, directory: @directory.dump, boot: boot.dump)
      end

      # To the user of the process.
      def chown_request
        status = File.read("/proc/#{@target.pid}/status")
        uid, gid = %w[Uid Gid].map { |name| status[/^#{name}:\s+\d+\s+(\d+)/, 1].to_i }
        [outside(""), outside("request")].each { |path| File.chown(uid, gid, path) }
      end

      def get_started(seconds)
        deadline = Clock.now + seconds
        attempt = 0
        loop do
          pause, why = ask(attempt += 1)
          if pause.is_a?(Float)
            @pause = pause
          elsif !AGAIN.include?(pause)
            refuse(pause, why)
          end
          await_start([AGAIN_AFTER * attempt, LONGEST_WAIT].min)
          break if started?

          time_out(seconds, why) if Clock.now > deadline
        end
      end

      # The line may have to wait on a thread that sleeps on: then the next one is for the thread that woke.
      def ask(attempt)
        asked = Native.attach_again if attempt > 1
        asked.nil? || asked.first == :gone ? Native.attach(@target.pid, @line) : asked
      end

      def await_start(seconds)
        deadline = Clock.now + seconds
        sleep(GLANCE / 10) until started? || Clock.now > deadline
      end

      def started? = File.exist?(outside("started"))

      # Without the request the line does nothing any more, should it be evaluated later.
      def time_out(seconds, why)
        File.unlink(outside("request"))
        why = "it is stopped, until it gets SIGCONT" if @target.stopped?
        why ||= "no thread of it looked for interrupts"
        raise UsageError, "process #{@target.pid} did not begin within #{seconds} s (--seconds): #{why}"
      rescue Errno::ENOENT
        nil # it begins just now
      end

      # What was found until then. Code that is evaluated is not stopped.
      def ended_early
        return unless @made && started?

        File.write(outside("stop"), "")
        await_answer(PATIENCE)
      rescue UsageError
        nil
      end

      def await_answer(seconds)
        deadline = Clock.now + seconds
        loop do
          answer = read("answer")
          return parse(answer) if answer
          if (failure = read("failed"))
            refuse(:failed, Printable.line(failure.strip))
          end
          raise UsageError, "process #{@target.pid} ended" unless @target.running?
          if Clock.now > deadline
            raise UsageError, "process #{@target.pid} did not answer within #{seconds.round} s"
          end

          sleep(GLANCE)
        end
      end

      # The process's user may have put anything there.
      def read(name)
        File.open(outside(name), File::RDONLY | File::NOFOLLOW | File::NONBLOCK) do |file|
          file.read if file.stat.file?
        end
      rescue SystemCallError
        nil
      end

      def parse(text)
        answer = JSON.parse(text)
        return answer unless answer["error"]

        place = answer["at"] ? " (#{answer["at"]})" : ""
        refuse(:failed, Printable.line("#{answer["error"]}#{place}"))
      rescue JSON::ParserError
        refuse(:failed, "its answer can't be read")
      end

      def refuse(kind, why)
        raise UsageError, "process #{@target.pid}: #{remedy(kind, why)}"
      end

      def clean_up
        return unless @made

        %w[request started stop answer answer.new failed].each { |name| FileUtils.rm_f(outside(name)) }
        Dir.rmdir(outside(""))
      rescue SystemCallError
        nil # the process is not done yet, or has put something there
      end
    end
  end
end
