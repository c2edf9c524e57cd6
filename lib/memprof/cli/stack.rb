# frozen_string_literal: true

module Memprof
  module CLI
    # `memprof stack`: the Ruby stacks of a process's threads.
    class Stack < HeapCommand
      include LiveProcess

      SUMMARY = "shows the Ruby stacks of a running process"
      USAGE = "[OPTIONS] PID"
      DETAILS = <<~TEXT
        The process need not have loaded memprof, and loads nothing: memprof copies it,
        in a few milliseconds, and reads the stacks of threads and suspended fibers in
        the copy. Linux only; run it as the user of the process or as root, with
        permission to trace it (ptrace).

        Examples:
          memprof stack 4711
          memprof stack --json 4711
      TEXT
      UNKNOWN = "Other threads are not shown: a garbage collection was under way, and other Ractors run."
      NO_FIBERS = "Suspended fibers are not shown: other Ractors run."
      private_constant :UNKNOWN, :NO_FIBERS

      def call(arguments)
        target = target(arguments)
        load_library
        copy = ProcessCopy.new(target)
        found = copy.ask({ do: "stack" }, seconds: option(:timeout))
        threads, fibers, ractors = found.values_at("threads", "fibers", "ractors")
        unless (ractors.nil? || ractors.is_a?(Integer)) && [threads, fibers || []].all? { |rows| rows?(rows) }
          raise UsageError, "process #{target.pid}: its answer cannot be read"
        end
        present(answer(copy, found)) do |page|
          next page.listing(frames(threads)) if output_format == :csv

          render(page, target, copy, threads, fibers)
          page.paragraph(others(ractors)) unless ractors == 1
          page.paragraph(NO_FIBERS) unless fibers
        end
      end

      private

      def rows?(rows) = rows.is_a?(Array) && rows.all?(Hash)

      def answer(copy, found)
        { ruby: copy.ruby_version, pause: copy.pause }.merge(found.slice("ractors", "threads", "fibers"))
      end

      # CSV has a row for each frame, and one for a thread without frames.
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

      # Ruby lists only the threads of the calling Ractor.
      def others(ractors)
        return UNKNOWN unless ractors

        "The threads of #{Units.plural(ractors - 1, "other Ractor")} are not shown."
      end

      def render(page, target, copy, threads, fibers)
        counts = [Units.plural(threads.size, "thread")]
        counts << Units.plural(fibers.size, "suspended fiber") if fibers&.any?
        page.heading("#{target.name} (#{target.pid}), Ruby #{copy.ruby_version}: #{counts.join(", ")}, " \
                     "paused for #{(copy.pause * 1000).round(1)} ms")
        threads.each { |thread| render_thread(page, thread) }
        fibers&.tally&.each { |fiber, count| render_fiber(page, fiber, count) }
      end

      # A server may have thousands of fibers that wait at one place.
      def render_fiber(page, fiber, count)
        name = (count == 1) ? "fiber" : Units.plural(count, "fiber")
        name += " created at #{fiber["created_at"]}" if fiber["created_at"]
        page.heading("#{name}, #{fiber["status"]}")
        render_frames(page, fiber)
      end

      def render_thread(page, thread)
        name = thread["main"] ? "main thread" : "thread"
        name += " \"#{thread["name"]}\"" if thread["name"] && !thread["main"]
        page.heading("#{name}, #{thread["status"]}")
        render_frames(page, thread)
      end

      def render_frames(page, row)
        frames = Array(row["backtrace"]).grep(String)
        page.text("no Ruby frame") if frames.empty?
        frames.each { |frame| page.note(Paths.short(Printable.utf8(frame))) }
      end
    end
  end
end
