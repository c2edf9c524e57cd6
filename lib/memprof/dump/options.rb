# frozen_string_literal: true

require_relative "../output"
require_relative "target"

module Memprof
  module Dump
    # How a dump is to be written, checked before anything is.
    class Options
      FORMATS = %i[memprof objspace binary heap_dump].freeze
      # What is written of strings, symbols, regexps and values of variables.
      VALUES = %i[full truncate hash length none].freeze
      COMPRESSIONS = %i[none gzip zstd].freeze
      ENDINGS = { ".gz" => :gzip, ".zst" => :zstd }.freeze
      BINARY = ".memprof"
      private_constant :ENDINGS, :BINARY

      attr_reader :format, :values, :compression

      def initialize(path = nil, format: nil, values: :full, compression: nil)
        base, ending = split(path.to_s)
        binary = base.end_with?(BINARY)
        @format = format.nil? ? (binary ? :binary : :memprof) : Output.check_format(format, FORMATS)
        @values = Options.one_of(VALUES, values, "values")
        compression ||= ending || :none
        @compression = Options.one_of(COMPRESSIONS, compression, "compression")
        refuse_twice(path, ending)
        freeze
      end

      # Picks a word from a list.
      def self.one_of(known, word, name)
        known.find { |candidate| candidate.to_s == word.to_s } ||
          raise(ArgumentError, "unknown #{name} #{word.inspect}; expected one of: #{known.join(", ")}")
      end

      # Whether it is text, which people can read.
      def text? = compression == :none && format != :binary

      # Whether the format has lines that are about no object.
      def notes? = format != :objspace

      # Refuses to write what is no text to a terminal, and to replace or follow a link to a device.
      def check_target(target)
        Target.check(target)
        return if text? || !Target.terminal?(target)

        raise ArgumentError, "a dump that is #{format == :binary ? "binary" : "compressed"} is not for a " \
                             "terminal: give a path, or send the output to a file or a pipe"
      end

      # Whether contents of the program are to be in the dump: its arguments, names of its files.
      def contents? = %i[full truncate].include?(values)

      # What file names end with.
      def ending
        return BINARY if format == :binary

        ".json#{ENDINGS.key(compression)}"
      end

      # As the extension takes them.
      def to_native = { format: format.to_s, values: values.to_s, compression: compression.to_s }

      private

      def split(path)
        ending = ENDINGS.keys.find { |candidate| path.end_with?(candidate) }
        ending ? [path.delete_suffix(ending), ENDINGS[ending]] : [path, nil]
      end

      def refuse_twice(path, ending)
        return unless format == :binary && compression != :none

        place = "#{path}: " if ending
        raise ArgumentError,
          "#{place}the binary format is compressed inside already; leave out #{compression}"
      end
    end
  end
end
