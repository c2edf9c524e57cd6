# frozen_string_literal: true

module Memprof
  module CLI
    # `memprof TARGET...`: the verb that gives the first answer about processes or files.
    module Targets
      PID = /\A\d+\z/
      SHOWN = 20 # bytes of an unknown file
      HELP = "; see `memprof --help`"
      private_constant :PID, :SHOWN, :HELP

      class << self
        # The verb for a command line that begins with a PID or a file; nil if it begins with neither.
        def verb(arguments)
          targets = arguments.take_while { |argument| !argument.start_with?("-") }
          return if targets.empty?
          return "leaks" if targets.first.match?(PID) && !File.exist?(targets.first)
          return unless File.exist?(targets.first) || targets.first.include?(File::SEPARATOR)

          of_files(targets)
        end

        # The verb for a command line that ends with a PID or a file. Behind a misspelt option, that may be
        # its value.
        def verb_behind_options(arguments)
          verb(arguments.last(1)) if known_option?(arguments) && ends_with_word?(arguments)
        end

        # The error of a command line that begins with an option and has no target.
        def refusal(arguments)
          return "invalid option: #{arguments.first}#{near(arguments)}#{HELP}" unless known_option?(arguments)
          return "TARGET, a PID or a file, is missing#{HELP}" unless ends_with_word?(arguments)

          word = arguments.last
          return "#{word} must come before its options#{HELP}" if VERBS.key?(word)

          "cannot read #{word}: no such file"
        end

        private

        # Whether the last argument is neither an option nor the value of one.
        def ends_with_word?(arguments)
          return false if arguments.last.start_with?("-")

          Flags::TABLE.none? { |flag| flag.value && flag.names.any? { |name| named?(name, arguments[-2]) } }
        end

        def known_option?(arguments)
          option = option(arguments)
          arguments.first == "--" || (option && names.any? { |name| named?(name, option) })
        end

        def option(arguments) = arguments.first[/\A(?:--[\w-]+|-\w)/]

        # Whether a word is the name of an option, or an abbreviation.
        def named?(name, word) = name == word || (word.to_s.match?(/\A--\w/) && name.start_with?(word))

        def near(arguments)
          option = option(arguments)
          option ? Suggestion.of(option, names.grep(/\A--/)) : ""
        end

        # Names of the options that the verbs of targets take.
        def names
          require_relative "../file_kind"
          FileKind.first_verbs.flat_map { |verb| Flags.of(verb) }.flat_map(&:names).uniq
        end

        def of_files(files)
          require_relative "../file_kind"
          missing = files.find { |file| !File.exist?(file) || File.directory?(file) }
          reason = File.exist?(missing) ? "is a directory" : "no such file" if missing
          raise UsageError, "cannot read #{missing}: #{reason}" if missing
          return "leaks" if files.any? { |file| File.pipe?(file) } # a pipe can't be inspected

          kinds = files.to_h { |file| [file, FileKind.of(file)] }
          unknown = kinds.key(nil)
          raise UsageError, unknown_kind(unknown) if unknown
          return FileKind.first_verb(kinds.values.first) if kinds.values.uniq.one?

          named = kinds.map { |file, kind| "#{file} is #{FileKind.name(kind)}" }
          raise UsageError, "expected files of one kind: #{named.join(", ")}"
        rescue LoadError, Memprof::Error => e
          raise UsageError, e.message.lines.first.chomp
        end

        def unknown_kind(path)
          if File.extname(path) == ".rb"
            return "#{path} is a Ruby program; `memprof run #{Suggestion.word(path)}` shows what it " \
                   "allocates and retains"
          end

          head = File.file?(path) && File.binread(path, SHOWN).to_s
          found = head ? "it begins with \"#{Printable.line(head)}\"" : "it is not a regular file"
          found = "it is empty" if head == ""
          "unknown kind of file: #{path} (#{found}); expected one of: #{FileKind.names.join(", ")}"
        rescue SystemCallError => e
          "cannot read #{path}: #{Output.reason(e)}"
        end
      end
    end
  end
end
