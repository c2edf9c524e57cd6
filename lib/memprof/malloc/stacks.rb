# frozen_string_literal: true

require_relative "recording"

module Memprof
  module Malloc
    # The stacks that allocated since the start of an in-memory recording, as a tree.
    class Stacks
      FORMATS = %i[collapsed speedscope firefox pprof].freeze
      # Our values, and their names in recordings.
      VALUES = { live: "leaked", allocated: "allocated" }.freeze
      DIRECTIONS = %i[top_down bottom_up].freeze
      private_constant :FORMATS, :VALUES, :DIRECTIONS

      def self.write(path_or_io, format, value)
        format = Output.check_format(format, FORMATS)
        value = name_of(value)
        command = $PROGRAM_NAME.dup.force_encoding(Encoding::UTF_8).scrub
        Output.open_file(path_or_io) do |out|
          Native.export_malloc(out.fileno, format.name, value, command)
        end
        nil
      end

      def self.name_of(value)
        VALUES.fetch(value) do
          raise ArgumentError, "unknown value #{value.inspect}; expected one of: #{VALUES.keys.join(", ")}"
        end
      end

      attr_reader :rows

      def initialize(direction, value, min)
        raise ArgumentError, "unknown direction #{direction.inspect}" unless DIRECTIONS.include?(direction)

        Loading.json
        answer = Native.tree_of_malloc(direction.name, self.class.name_of(value), Float(min))
        @summary = JSON.parse(answer, symbolize_names: true)
        @rows = @summary.delete(:rows)
        @options = { direction: direction, value: value, min: min }
      end

      def to_s(color: false)
        total = @summary[:total].merge(live_bytes: @summary[:total][:leaked_bytes])
        Recording::TreeText.new(@summary.merge(total: total), @rows, **@options, color: color).to_s
      end
    end
  end
end
