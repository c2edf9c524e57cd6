# frozen_string_literal: true

module Memprof
  module CLI
    # `memprof stats`: a dump in numbers, or the live tracked objects of a running process.
    class Stats < HeapCommand
      include LiveProcess

      SUMMARY = "summarizes a dump, or the tracked objects of a process"
      USAGE = "[OPTIONS] FILE | PID"
      DETAILS = <<~TEXT
        For a dump: its origin, objects by type, the classes and roots that retain the
        most memory, and what the dump lacks. CSV has the types.

        For a process: one line per allocation site and class with the number of
        objects, most first, as Memprof.stats prints them. The process must have loaded
        memprof/signal.

        Examples:
          memprof stats heap.memprof
          memprof stats 4711 --limit 20
      TEXT

      LINE = /\A *(\d+) (.*?):(\d+):(.+)\z/
      private_constant :LINE

      def call(arguments)
        return live(arguments) if @options[:pid] || (arguments.one? && pid?(arguments.first))

        file, = expect_arguments(arguments, "FILE or PID")
        answer = ask(open_heap(file), :overview, **@options.slice(:limit))
        present(answer, steps(file)) do |page|
          output_format == :csv ? page.listing(Overview.types(answer)) : Overview.render(page, file, answer)
        end
      end

      private

      def live(arguments)
        answer = ask_process(target(arguments), { do: "stats" }.merge(@options.slice(:limit)))
        lines = Array(answer["lines"])
        return shown(lines.map { |line| "#{Printable.line(line)}\n" }.join) if output_format == :text

        rows = lines.map { |line| row(line) }
        present({ objects: rows }) do |page|
          page.listing(Listing.new.columns(:count, :class)
            .columns(:site, as: :location) { |row| row.slice(:file, :line) }.rows(rows))
        end
      end

      # The parts of a line of Memprof.stats; a line of another form is a class without the rest.
      def row(line)
        count, file, number, name = LINE.match(line)&.captures
        { count: count&.to_i, file: file, line: number&.to_i, class: name || line }
      end

      def steps(file)
        [
          [["leaks", file], "what retains most of it"],
          [["histogram", file], "all classes"],
          [["top", file], "the largest objects"],
          [["web", file], "the same in a browser"]
        ]
      end
    end
  end
end
