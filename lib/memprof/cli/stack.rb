# frozen_string_literal: true

require_relative "heap_command"
require_relative "live_process"
require_relative "process_copy"

module Memprof
  module CLI
    # `memprof stack`: what the threads of a process do.
    class Stack < HeapCommand
      include LiveProcess

      SUMMARY = "shows the Ruby stacks of a running process"
      USAGE = "[OPTIONS] PID"
      DETAILS = <<~TEXT
        The process need not have loaded memprof, and loads nothing: memprof copies it,
        in a few milliseconds, and reads the stacks in the copy. Linux only; run it as
        the user of the process or as root, with permission to trace it (ptrace).

        Examples:
          memprof stack 4711
          memprof stack --json 4711
      TEXT
      SECONDS = 30
      private_constant :SECONDS

      def call(arguments)
        pid, = expect_arguments(arguments, "PID")
        raise UsageError,
          "invalid PID \"#{pid}\"; expected a process id" unless pid.match?(/\A[1-9]\d{0,9}\z/)

        @options[:pid] = pid.to_i
        target = target([])
        load_library
        copy = ProcessCopy.new(target)
        threads = copy.ask({ do: "stack" }, seconds: @options.fetch(:seconds, SECONDS)).fetch("threads")
        present(answer(copy, threads)) { |page| render(page, target, copy, threads) }
      end

      private

      def define_options(parser)
        define_format(parser)
        count(parser, "--seconds N", "timeout (default: #{SECONDS})", :seconds)
      end

      def answer(copy, threads)
        { ruby: copy.ruby_version, pause: copy.pause, threads: threads }
      end

      def render(page, target, copy, threads)
        page.heading("#{target.name} (#{target.pid}), Ruby #{copy.ruby_version}: " \
                     "#{Cell.plural(threads.size, "thread")}, paused for #{(copy.pause * 1000).round(1)} ms")
        threads.each { |thread| render_thread(page, thread) }
      end

      def render_thread(page, thread)
        name = thread["main"] ? "main thread" : "thread"
        name += " \"#{thread["name"]}\"" if thread["name"] && !thread["main"]
        page.heading("#{name}, #{thread["status"]}")
        frames = thread.fetch("backtrace", [])
        page.text("no Ruby frame") if frames.empty?
        frames.each { |frame| page.note(frame) }
      end
    end
  end
end
