# frozen_string_literal: true

require_relative "../check/comparison"
require_relative "../file_kind"
require_relative "../mcp"
require_relative "scratch"

module Memprof
  module CLI
    # `memprof export FILE... report.html`: the pages of `memprof web` as one file for a ticket. Contents of
    # strings are left out unless --show-contents is given: such a file is passed on.
    module ReportFile
      ENDING = "report.html"
      MOST_DUMPS = 3
      PATIENCE = 24 * 3600 # seconds for a dump to open
      HIDDEN = "Contents of strings are left out."
      private_constant :MOST_DUMPS, :PATIENCE, :HIDDEN

      private

      def report(files, out)
        refuse_options(%i[where limit], "does not apply to reports")
        files.each { |file| check_readable(file, stdin: false) }
        load_library
        require_relative "../web"
        require_relative "../web/report"
        kinds = kinds_of(files)
        Scratch.directory do |directory|
          text = busy { text_of_report(files, kinds, directory) }
          out == "-" ? (return ExitStatus.of(@terminal.print(text))) : Output.write(out, text)
          @terminal.warn("#{out}: #{Units.bytes(text.bytesize)}")
          @terminal.hint("\nNext: open it in a browser, or attach it to a ticket")
        end
        ExitStatus::DONE
      end

      # Dumps are compared, and two reports; a page is about one of the other files.
      def kinds_of(files)
        kinds = files.map { |file| FileKind.of(file) || unknown_kind(file) }
        dumps = kinds.all? { |kind| %i[heap core].include?(kind) }
        return kinds if files.one? || (dumps && files.size <= MOST_DUMPS) || two_reports?(files)

        raise UsageError,
          "a report compares at most #{MOST_DUMPS} heap dumps or two JSON reports, or is about one other file"
      end

      def two_reports?(files)
        files.size == 2 && files.all? { |file| Memprof::Check::Comparison.report?(file) }
      end

      def unknown_kind(file)
        raise UsageError, "#{file} is not a file that memprof shows; expected #{FileKind.names.join(", ")}"
      end

      def text_of_report(files, kinds, directory)
        heaps = Memprof::Web::Heaps.new(ignore_stack_roots: @options.fetch(:ignore_stack_roots, false))
        hidden = MCP::Hidden.new(directory) unless @options[:show_contents]
        files.zip(kinds) do |file, kind|
          %i[heap core].include?(kind) ? add_dump(heaps, file, hidden) : heaps.records.add(file, kind)
        end
        notes = hidden && heaps.any? ? [HIDDEN] : []
        heaps.using(*heaps.to_a) do
          Memprof::Web::Report.new(heaps, notes: notes, strings: hidden.nil?).to_html
        end
      ensure
        heaps&.close_all
      end

      def add_dump(heaps, file, hidden)
        @terminal.progress("reading #{File.basename(file)}")
        path, said = hidden ? hidden.copy(file) : [file, []]
        said.each { |fault| (@incomplete ||= {})[fault] ||= @terminal.warn(fault) || true }
        entry = heaps.add(path, name: File.basename(file), file: file,
          ignore_stack_roots: @options.fetch(:ignore_stack_roots, false),
          index: !hidden && !@options[:no_index], **blocks_of(file))
        warn_of_missing_parts(entry.heap(patience: PATIENCE).source, file)
      end
    end
  end
end
