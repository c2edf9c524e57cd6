# frozen_string_literal: true

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
      UNKNOWN = "Other threads are not shown: a garbage collection was under way, and other Ractors run."
      private_constant :SECONDS, :UNKNOWN

      def call(arguments)
        pid, = expect_arguments(arguments, "PID")
        target = target_of(pid)
        load_library
        copy = ProcessCopy.new(target)
        found = copy.ask({ do: "stack" }, seconds: @options.fetch(:seconds, SECONDS))
        threads, ractors = found.values_at("threads", "ractors")
        unless (ractors.nil? || ractors.is_a?(Integer)) && threads.is_a?(Array) && threads.all?(Hash)
          raise UsageError, "process #{pid}: its answer can't be read"
        end
        present(answer(copy, threads, ractors)) do |page|
          render(page, target, copy, threads)
          page.paragraph(others(ractors)) unless ractors == 1
        end
      end

      private

      def define_options
        define_format
        count("--seconds N", "timeout (default: #{SECONDS})", :seconds)
      end

      def answer(copy, threads, ractors)
        { ruby: copy.ruby_version, pause: copy.pause, ractors: ractors, threads: threads }
      end

      # Ruby lists the threads of the Ractor that asks.
      def others(ractors)
        return UNKNOWN unless ractors

        "The threads of #{Units.plural(ractors - 1, "other Ractor")} are not shown."
      end

      def render(page, target, copy, threads)
        page.heading("#{target.name} (#{target.pid}), Ruby #{copy.ruby_version}: " \
                     "#{Units.plural(threads.size, "thread")}, paused for #{(copy.pause * 1000).round(1)} ms")
        threads.each { |thread| render_thread(page, thread) }
      end

      def render_thread(page, thread)
        name = thread["main"] ? "main thread" : "thread"
        name += " \"#{thread["name"]}\"" if thread["name"] && !thread["main"]
        page.heading("#{name}, #{thread["status"]}")
        frames = Array(thread["backtrace"]).grep(String)
        page.text("no Ruby frame") if frames.empty?
        frames.each { |frame| page.note(frame) }
      end
    end
  end
end
