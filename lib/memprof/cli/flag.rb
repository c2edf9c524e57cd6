# frozen_string_literal: true

require_relative "../byte_size"

module Memprof
  module CLI
    # An option of the command line: its names and that of its value, how that is read, and what it does for
    # each command that takes it.
    class Flag
      # Characters of a line that says what an option does, so that help is 80 wide.
      WIDTH = 52
      private_constant :WIDTH

      # @return [String, nil] `-f`, `--format`, `FORMAT`, and the name that it had before
      attr_reader :short, :long, :value, :was

      # @param names [String] as `-f, --format FORMAT`
      # @param does [Hash{String => String, Array, nil}] what it does, by commands (`"top query"`); with a
      #   default: `[sentence, default]`. Without a sentence, the words that it takes say enough
      def initialize(names, reader, was: nil, **does)
        @short = names[/\A-\w/]
        @long = names[/--[\w-]+/]
        @value = names[/--[\w-]+ (.+)/, 1]
        @reader = reader
        @was = was
        @does = does.flat_map { |verbs, text| verbs.split.map { |verb| [verb, Array(text)] } }.to_h
      end

      def verbs = @does.keys

      def names = [long, short].compact

      # The key of its value among the options of the command.
      def key = long.delete_prefix("--").tr("-", "_").to_sym

      # The words that it takes, if there are only a few.
      def words = @reader.words

      # The value for a command if it is not given; nil without one, or if help describes it in words.
      def default(verb)
        _, default = @does.fetch(verb)
        default && @reader.read(default.to_s)
      end

      def sentence(verb)
        text, default = @does.fetch(verb)
        return words.map { |word| word == default ? "#{word} (default)" : word }.join(", ") unless text

        default.nil? ? text : "#{text} (default: #{default})"
      end

      # The arguments of OptionParser#on.
      def definition(verb)
        lines = sentence(verb).scan(/\S.{0,#{WIDTH - 1}}(?=\s|\z)/o)
        [short, [long, value].compact.join(" "), *lines].compact
      end

      # The name that it had before, for OptionParser.
      def old_definition = [[was, value].compact.join(" ")]

      # Puts what is given among the options of a command.
      #
      # @raise [UsageError] it is not what the option takes
      def take(given, options)
        value = @reader.read(given)
        raise ArgumentError if value.nil?

        @reader.store(options, key, value)
      rescue ArgumentError => e
        expected = e.is_a?(Reader::Expected) ? e.message : @reader.expected
        raise UsageError, "invalid #{long} \"#{given}\"; expected #{expected}"
      end

      # How the value of an option is read, and what is expected. The block gives nil or raises ArgumentError
      # for what it is not.
      class Reader
        # The expectation, if it depends on the value.
        class Expected < ArgumentError; end

        attr_reader :expected

        def initialize(expected = nil, &read)
          @expected = expected
          @read = read
        end

        def words = nil

        def read(given) = @read.call(given)

        def store(options, key, value)
          options[key] = value
        end
      end

      # One of a few words.
      class Words < Reader
        # The block gives them, when they are first needed: they may be those of another part of memprof.
        def words = @words ||= @read.call

        def expected = "one of: #{words.join(", ")}"

        def read(given) = words.find { |word| word.to_s == given }
      end

      # A whole number.
      class Count < Reader
        MOST = 1_000_000_000

        def initialize(least: 1, most: MOST)
          super()
          @least = least
          @most = most
        end

        def expected = "a number of at least #{@least}"

        def read(given)
          number = Integer(given, exception: false)
          return unless number && number >= @least
          raise Expected, "a number of at most #{@most}" if @most && number > @most

          number
        end
      end

      # One object in N. A size stays a text: with --malloc, --sample was what --sample-bytes is.
      class Sample < Count
        def read(given) = super || (given if Flags::SIZE.read(given))
      end

      # A step of `memprof subset`: they are taken in the order in which they are given.
      class Step < Reader
        def read(given) = given

        def store(options, key, value)
          (options[:steps] ||= []) << [key, value]
        end
      end

      # A file to write. It is checked before the program runs, not when its report is to be written.
      class Path < Reader
        def read(path) = path == "-" ? path : Command.output_path(path)

        def store(options, key, path)
          options[key] = (path unless path == "-") # stdout
        end
      end

      # Names of classes, one more each time.
      class ClassName < Reader
        # The beginning of names of classes and of the VM's internal objects.
        NAME = /\A(?:#?<|\p{Lu}|\p{Lt})/
        private_constant :NAME

        # Whether this can be the name of a class.
        def self.===(text) = NAME.match?(Printable.utf8(text))

        def expected = "a class, such as String or <array>"

        def read(name) = (name if self.class === name)

        def store(options, key, name)
          (options[key] ||= []) << name
        end
      end

      # Nothing: the option is there. `--json` gives another one a value.
      class Switch < Reader
        def initialize(other = nil, value = true)
          super()
          @other = other
          @value = value
        end

        def read(_given) = @value

        def store(options, key, value)
          options[@other || key] = value
        end
      end
    end
  end
end
