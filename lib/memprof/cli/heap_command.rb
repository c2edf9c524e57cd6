# frozen_string_literal: true

require "json"
require_relative "../wording"

module Memprof
  module CLI
    # Base of the verbs that read a dump: options, opening, questions, and answers in all formats.
    class HeapCommand < Command
      WIDEST = 80 # characters of a line that suggests a command
      ADDRESS = /\A(?:0x)?\h{1,16}\z/i
      # Options that decide which objects and references a dump has.
      READING = %i[blocks ignore_stack_roots].freeze

      # Numbers of an incomplete dump are not those of the heap.
      def start(arguments)
        status = super
        @incomplete ? ExitStatus::FAILED : status
      end

      private

      # Options may also follow the file.
      def arrange(arguments) = parser.permute(arguments)

      # The block may return the core file at the path.
      def open_heap(path)
        check_readable(path)
        load_library
        require_relative "../heap"
        heap = Loading.new(@terminal, path).open(core: (yield if block_given?), index: !@options[:no_index],
          ignore_stack_roots: @options.fetch(:ignore_stack_roots, false), **blocks_of(path))
        warn_of_missing_parts(heap.source, path)
        heap
      rescue Memprof::Error => e
        refuse_other_kind(path, "a heap dump", :heap, :core)
        raise UsageError, "cannot read #{path}: #{e.message.delete_prefix("cannot read #{path}: ")}"
      end

      def blocks_of(path)
        return {} unless @options[:blocks]
        require_relative "../core"
        return { blocks: true } if path != "-" && Memprof::Core.core?(path)

        raise UsageError, "--blocks needs a core file, and #{path} is not one"
      end

      def warn_of_missing_parts(source, path)
        name = path == "-" ? "the dump" : path
        faults = []
        faults << "#{name} is truncated: objects of its missing part are not counted" if source[:truncated]
        faults << "#{name}: #{skipped(source)}" if source[:skipped].to_i.positive?
        return if faults.empty?

        (@incomplete ||= {})[path] ||= faults.each { |fault| @terminal.warn(fault) }
      end

      def skipped(source)
        part = source[:format] == "binary" ? "block" : "line"
        parts = Units.plural(source[:skipped], "invalid #{part}")
        "skipped #{parts}, the first is #{part} #{source[:first_skipped]}"
      end

      def ask(heap, question, **parameters) = busy { heap.ask(question, **parameters) }

      def busy(&block)
        @terminal.busy(&block)
      rescue ArgumentError => e
        raise UsageError::Shown, e.message
      end

      def compare(heaps)
        before, *after = heaps
        @terminal.busy { before.diff(*after) }
      rescue ArgumentError, Memprof::Error => e
        raise UsageError, "cannot compare the dumps: #{e.message}"
      end

      # Prints an answer, as is or as the block lays it out on a Page, and what to do next: commands with
      # their purposes.
      def present(answer, steps = [])
        return shown(JSON.pretty_generate(answer, max_nesting: 0) << "\n") if output_format == :json

        page = Page.new(**screen)
        yield(page)
        status = shown(page.to(output_format))
        next_steps(steps)
        status
      end

      def shown(text)
        return deliver(text) if @options[:output] || @options[:no_pager]

        @terminal.page(text) ? ExitStatus::DONE : ExitStatus::FAILED
      end

      def next_steps(steps)
        # Input from a pipe is gone.
        gone = steps.flatten.any? { |word| word == "-" || File.pipe?(word) }
        return if output_format != :text || steps.empty? || gone

        commands = steps.map do |words, _|
          "memprof #{as_read(words).map { |word| Suggestion.word(word) }.join(" ")}"
        end
        width = commands.map(&:length).max
        beside = steps.zip(commands).map { |(_, purpose), command| "  #{command.ljust(width)}  #{purpose}" }
        above = steps.zip(commands).map { |(_, purpose), command| "  #{purpose}:\n    #{command}" }
        lines = beside.all? { |line| line.length <= WIDEST } ? beside : above
        @terminal.hint("\nNext:\n#{lines.join("\n")}")
      end

      # A command with the options by which this one has read the dump.
      def as_read((verb, *words))
        options = Flags.of(verb).map(&:key) & READING & @options.select { |_, value| value }.keys
        [verb, *options.map { |name| "--#{name.to_s.tr("_", "-")}" }, *words]
      end

      def address(text)
        return text.downcase.start_with?("0x") ? text.downcase : "0x#{text.downcase}" if ADDRESS.match?(text)

        raise UsageError,
          "\"#{text}\" is not an object address; `memprof top` and `memprof query` list addresses"
      end

      # The first generation and the last one.
      def generations(span)
        first, last = span
        first == last ? first : "#{first}-#{last}"
      end

      # An answer's caveats, as notes.
      def warn(page, warnings)
        warnings.uniq.each { |warning| page.paragraph(Wording.note(warning)) }
      end

      def more(page, count, word)
        page.note("... #{Units.plural(count, "more #{word}")} (--limit N)") if count.to_i.positive?
      end
    end
  end
end
