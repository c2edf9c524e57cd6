# frozen_string_literal: true

module Memprof
  module CLI
    # `memprof core`: a core file or the memory of a process at a glance, and answers about its blocks.
    class Core < HeapCommand
      include LiveProcess

      autoload :Summary, "#{__dir__}/core_summary"

      SUMMARY = "shows what is used, free and leaked in a core file or process"
      USAGE = "[OPTIONS] FILE | PID [VERB SET ...]"
      DETAILS = <<~TEXT
        FILE is a core file, written by the kernel or gcore, of any 64-bit Linux process
        that uses glibc's malloc, Ruby or not. The process need not have loaded memprof,
        and memprof needs no symbols. A running process is read from a copy: that pauses
        it for milliseconds, and needs permission to trace it. Without a verb memprof
        shows where the memory went, and what is leaked.

        #{Compat::Chap::HELP}

        With --recording, a recording of malloc of that process (`memprof run --malloc
        --addresses`), it also says which line allocated each block.

        Examples:
          memprof core core.4711
        #{Compat::Chap::EXAMPLES}
      TEXT
      def call(arguments)
        file, *words = arguments
        raise UsageError, "FILE or PID is missing; see `memprof help core`" unless file

        if output_format == :markdown && words.any?
          raise UsageError, "--markdown shows the summary only: answers about blocks are lines, not tables"
        end
        requests = Compat::Chap.requests(words, file) unless words.empty?
        opened(file) do |core|
          next Summary.new(self, @terminal, source(file), core).render if words.empty?

          incomplete = warn_of_faults(core).any?
          counted = false
          status = to_output do
            done = requests.all? do |request, path|
              counted ||= request.counts?
              answer_to(path, core, request)
            end
            done ? ExitStatus::DONE : ExitStatus::FAILED
          end
          incomplete && counted ? 2 : status
        end
      rescue ArgumentError => e
        raise UsageError, e.message
      end

      # Used by Summary, too.
      public :present, :next_steps, :output_format

      private

      # Numbers are too low if memory is missing. Questions without an answer say why themselves.
      def warn_of_faults(core)
        require_relative "../core/writable"
        Memprof::Core::Writable.faults(core.damage).each { |fault| @terminal.warn(fault) }
      end

      # The arguments that name the memory in suggested commands.
      def source(file) = [file, *(["--recording", @options[:recording]] if @options[:recording])]

      def opened(of, &block)
        if pid?(of)
          load_library
          return Memprof::Core.of(of.to_i, recording: @options[:recording], &block)
        end
        check_readable(of, stdin: false)
        load_library
        refuse_other_kind(of, "a core file", :core)
        block.call(@terminal.busy { Memprof::Core.open(of, recording: @options[:recording]) })
      end

      # Arguments after FILE may begin with a dash: a signature, a rule, stdin. So only long options are
      # allowed anywhere.
      def arrange(arguments)
        rest = parser.order(arguments)
        is_option = ->(word, at) { word.match?(/\A--\w/) || (at == 1 && %w[-f -o].include?(word)) }
        while (at = rest.each_index.find { |index| is_option.call(rest[index], index) })
          rest = [*rest.first(at), *parser.order(rest.drop(at))]
        end
        rest
      end

      # Answers are streamed to the file, as there may be millions of lines.
      def to_output
        return yield unless @options[:output]

        print_into(@options[:output], "--output #{@options[:output]}") { yield.zero? }
        0
      end

      # Redirects the block's output to a file. An incomplete one does not replace an existing file.
      def print_into(path, name)
        shown = @terminal
        Output.open(path) do |file|
          @terminal = Terminal.new(out: file)
          raise UsageError, "cannot write #{name}" unless yield
        end
      ensure
        @terminal = shown
      end

      def answer_to(path, core, request)
        return answer(core, request) unless path

        print_into(path, path) { answer(core, request) }
        @terminal.warn("wrote #{path}")
        true
      end

      def answer(core, request)
        answers = Compat::Chap::Answers.new(core, request)
        return @terminal.puts(JSON.generate(answers.to_h)) if output_format == :json

        buffer = +""
        answers.each_line do |line|
          buffer << line << "\n"
          next if buffer.bytesize < (1 << 16)
          return false unless @terminal.print(buffer)

          buffer.clear
        end
        buffer.empty? || @terminal.print(buffer)
      end
    end
  end
end
