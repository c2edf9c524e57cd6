# frozen_string_literal: true

require_relative "../byte_size"

module Memprof
  module CLI
    # Kinds of options. Each takes what OptionParser does, and the name of its value.
    module Options
      MAX_SIZE = (1 << 32) - 1
      # As Session::MAX_SAMPLE and MAX_STACK.
      MOST = 1_000_000_000
      MOST_FRAMES = 2048
      EXPECTED_SIZE = "a size between 1 B and 4 GiB, as 512KiB"
      private_constant :MAX_SIZE, :MOST, :MOST_FRAMES, :EXPECTED_SIZE

      private

      # An option that is a whole number of at least 1.
      def count(*definition, name, most: MOST)
        parser.on(*definition, Integer) do |value|
          invalid(definition, value, "a number of at least 1") unless value.positive?
          invalid(definition, value, "a number of at most #{most}") if most && value > most

          @options[name] = value
        end
      end

      def invalid(definition, value, expected)
        raise UsageError, "invalid #{long(Array(definition))} \"#{value}\"; expected #{expected}"
      end

      # The name of an option in its definition.
      def long(definition) = definition.grep(/\A--/).first[/\A--[\w-]+/]

      # An option whose value the block makes of what is given; nil or ArgumentError mean that it cannot.
      def checked(*definition, name, expected)
        parser.on(*definition) do |given|
          @options[name] = yield(given) || raise(ArgumentError)
        rescue ArgumentError
          invalid(definition, given, expected)
        end
      end

      # An option that is one of a few words.
      def one_of(words, *definition, name)
        choices[long(definition)] = words.map(&:to_s)
        checked(*definition, name, "one of: #{words.join(", ")}") do |text|
          words.find { |word| word.to_s == text }
        end
      end

      def output(*definition) = parser.on("-o", *definition) { |path| @options[:output] = output_path(path) }

      def formats(formats, *description)
        one_of(formats, "-f", "--format FORMAT", *description, :format)
        parser.on("--json", "the same as --format json") { @options[:format] = :json }
      end

      # An option that is a number of bytes between 1 B and 4 GiB: 65536, 64KiB.
      def byte_size(*definition, name) = checked(*definition, name, EXPECTED_SIZE) { |text| bytes(text) }

      def bytes(text) = ByteSize.read(text).then { |size| size if size.between?(1, MAX_SIZE) }

      def text(*definition, name) = parser.on(*definition) { |value| @options[name] = value }

      def flag(*definition, name) = parser.on(*definition) { @options[name] = true }

      # Refuses the first of these that is on the command line.
      def refuse_options(names, why)
        name = (given.keys & names).first
        raise UsageError, "--#{name.to_s.tr("_", "-")} #{why}" if name
      end
    end
  end
end
