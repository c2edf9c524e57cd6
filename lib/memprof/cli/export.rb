# frozen_string_literal: true

require_relative "scratch"

module Memprof
  module CLI
    # `memprof export`: a heap in the format of another program.
    class Export < HeapCommand
      include ReportFile

      # Format names, as the heap has them, and their file extensions.
      FORMATS = {
        heapsnapshot: %w[.heapsnapshot], gml: %w[.gml], gexf: %w[.gexf], dot: %w[.dot .gv],
        flamegraph: %w[.html], collapsed: %w[.collapsed .folded], "objects-csv": %w[.csv],
        "references-csv": %w[.references.csv], mongo: %w[.jsonl .ndjson .json]
      }.freeze
      VIEWERS = {
        heapsnapshot: "open it in Chrome: DevTools, Memory, Load", gml: "open it in Gephi",
        gexf: "open it in Gephi", dot: "draw it: dot -Tsvg -O FILE", flamegraph: "open it in a browser",
        collapsed: "draw it: flamegraph.pl, inferno, speedscope", mongo: "load it: mongoimport --file FILE"
      }.freeze
      private_constant :VIEWERS

      SUMMARY = "exports a dump to Chrome, Gephi, Graphviz, MongoDB, ..."
      USAGE = "[OPTIONS] FILE... OUT"
      DETAILS = <<~TEXT
        FORMAT is heapsnapshot (Chrome's DevTools), gml, gexf (Gephi), dot (Graphviz),
        flamegraph (an HTML page that draws the dominator tree), collapsed (for flame
        graph scripts), objects-csv and references-csv (tables) or mongo (JSON lines).
        Without --format the extension of OUT selects it: .heapsnapshot, .gml, .gexf,
        .dot, .html, .folded, .csv, .references.csv, .jsonl. A - for OUT is stdout.

        A file whose name ends in report.html (--format report) is for a ticket: one
        page of at most 2 MiB, without scripts, with the verdict, tables and a flame
        graph. Two or three dumps are compared, and two JSON reports. FILE may also be
        what memprof web shows: a recording of malloc, a JSON report, requires, traced
        requests. Contents of strings are left out, unless you give --show-contents.

        Formats for viewers get the objects that retain the most memory, as many as the
        viewer can handle. The other formats get all objects.

        Examples:
          memprof export heap.memprof heap.heapsnapshot
          memprof export --where 'class =~ /^Shop/' heap.memprof shop.gexf
          memprof export --limit 100 heap.memprof heap.dot
          memprof export before.memprof after.memprof report.html
      TEXT

      def call(arguments)
        *files, out = arguments
        return report_file(files, out) if report?(out)

        file, out = expect_arguments(arguments, "FILE", "OUT")
        refuse_options(%i[show_contents], "needs a report")
        format = @options[:format] || by_ending(out)
        check_out(out)
        heap = open_heap(file)
        out == "-" ? to_stdout(heap, format) : to_file(heap, format, out)
      end

      private

      def report?(out)
        format = @options[:format]
        format ? format == :report : out.to_s.downcase.end_with?(ReportFile::ENDING)
      end

      def report_file(files, out)
        expect_arguments([*files, out].compact.first(2), "FILE", "OUT")
        check_out(out)
        report(files, out)
      end

      def by_ending(out)
        ending = FORMATS.values.flatten.select { |known| out.downcase.end_with?(known) }.max_by(&:length)
        FORMATS.key(FORMATS.values.find { |endings| endings.include?(ending) }) ||
          raise(UsageError, "unknown file extension \"#{File.extname(out)}\"; expected one of: " \
                            "#{FORMATS.values.flatten.join(", ")} (or give --format)")
      end

      def to_file(heap, format, out)
        counts = export(heap, out, format)
        @terminal.warn("#{out}: #{summary(counts)}")
        viewer = VIEWERS[format]
        @terminal.hint("\nNext: #{viewer}") if viewer
        0
      end

      def to_stdout(heap, format)
        Scratch.directory do |directory|
          path = File.join(directory, "export")
          counts = export(heap, path, format)
          printed = @terminal.print_file(path)
          @terminal.warn(summary(counts))
          printed ? ExitStatus::DONE : ExitStatus::FAILED
        end
      end

      def export(heap, path, format)
        busy do
          @terminal.progress("writing #{File.basename(path)}")
          heap.export(path, format: format.to_s, **@options.slice(:where, :limit))
        end
      end

      def summary(counts)
        parts = [Units.objects(counts[:objects])]
        parts << Units.plural(counts[:references], "reference") if some?(counts[:references])
        parts << "#{Units.count(counts[:folded])} smaller objects merged" if some?(counts[:folded])
        parts << "#{Units.count(counts[:left_out])} left out" if some?(counts[:left_out])
        parts.join("; ")
      end

      def some?(count) = count.to_i.positive?
    end
  end
end
