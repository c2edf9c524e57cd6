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
      private_constant :SECONDS

      def call(arguments)
        pid, = expect_arguments(arguments, "PID")
        target = target_of(pid)
        load_library
        copy = ProcessCopy.new(target)
        found = copy.ask({ do: "stack" }, seconds: @options.fetch(:seconds, SECONDS))
        threads, ractors = found.values_at("threads", "ractors")
        unless ractors.is_a?(Integer) && threads.is_a?(Array) && threads.all?(Hash)
          raise UsageError, "process #{pid}: its answer can't be read"
        end
        present(answer(copy, threads, ractors)) do |page|
          next page.listing(frames(threads)) if output_format == :csv

          render(page, target, copy, threads)
          page.paragraph(others(ractors - 1)) if ractors > 1
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

      # CSV has a row for each frame, and one for a thread without any.
      def frames(threads)
        rows = threads.each_with_index.flat_map do |thread, number|
          name = thread["main"] ? "main" : thread["name"]
          facts = { thread: number + 1, name: name, status: thread["status"] }
          frames = Array(thread["backtrace"]).grep(String)
          frames = [nil] if frames.empty?
          frames.each_with_index.map { |frame, depth| { **facts, depth: depth, frame: frame } }
        end
        columns = { thread: :number, name: :name, status: :name, depth: :number, frame: :name }
        listing = Listing.new
        columns.each { |key, kind| listing.column(key.name.capitalize, kind, key) }
        listing.rows(rows)
      end

      # Ruby lists the threads of the Ractor that asks.
      def others(ractors) = "The threads of #{Units.plural(ractors, "other Ractor")} are not shown."

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
