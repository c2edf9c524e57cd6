# frozen_string_literal: true

require_relative "../output"
require_relative "target"

module Memprof
  module Dump
    # Options for writing a dump, checked before anything is written.
    class Options
      FORMATS = %i[memprof objspace binary heap_dump].freeze
      # How to write strings, symbols, regexps and values of variables.
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

      # Whether the dump is human-readable text.
      def text? = compression == :none && format != :binary

      # Whether the format has lines that describe no object.
      def notes? = format != :objspace

      # Refuses to write binary data to a terminal, and to replace or follow a link to a device.
      def check_target(target)
        Target.check(target)
        return if text? || !Target.terminal?(target)

        kind = format == :binary ? "binary" : "compressed"
        raise ArgumentError, "cannot write a #{kind} dump to a terminal; " \
                             "give a path, or send the output to a file or a pipe"
      end

      # Whether the dump may contain data of the program: its arguments, names of its files.
      def contents? = %i[full truncate].include?(values)

      # The file extension.
      def ending
        return BINARY if format == :binary

        ".json#{ENDINGS.key(compression)}"
      end

      # The options for the extension.
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
          "#{place}the binary format is compressed already; leave out #{compression}"
      end
    end
  end
end
