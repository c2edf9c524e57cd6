# frozen_string_literal: true

module Memprof
  module MCP
    # An argument of a tool: its JSON schema, and the words of the command line that stand for it.
    class Parameter
      # How a value of each kind is described, and checked.
      KINDS = {
        file: { type: "string" },
        target: { type: "string" },
        targets: { type: "array", items: { type: "string" }, minItems: 1 },
        text: { type: "string" },
        number: { type: "integer", minimum: 1 },
        switch: { type: "boolean" },
        words: { type: "array", items: { type: "string" }, minItems: 1 }
      }.freeze
      LONGEST = 4096 # characters of a text
      private_constant :LONGEST

      # An invalid argument, in words.
      class Invalid < StandardError; end

      attr_reader :name, :flag, :default

      # `flag` is the option that takes the value; without it, the value is an argument of the command. `unit`
      # is what the option expects behind a number.
      def initialize(name, kind, description, flag: nil, required: false, one_of: nil, unit: nil, own: false,
        default: nil)
        @name = name
        @kind = kind
        @description = description
        @flag = flag
        @required = required
        @one_of = one_of
        @unit = unit
        @own = own
        @default = default
      end

      def required? = @required

      # Whether the command does not have it: the server reads it.
      def own? = @own

      def schema
        known = KINDS.fetch(@kind)
        known = known.merge(enum: @one_of.map(&:to_s)) if @one_of
        known = known.merge(default: @default) if @default
        known.merge(description: @description)
      end

      # Raises if the value can't be what the schema asks for.
      def check(value)
        raise Invalid, "#{name} must be #{expectation}" unless valid?(value)

        files(value).each do |path|
          reason = File.exist?(path) ? "not a regular file" : "no such file"
          raise Invalid, "cannot read #{path}: #{reason}" unless File.file?(path)
        end
      end

      # The value on a command line. Values never are options themselves: `--flag=value`, or behind `--`.
      def words(value)
        return flag && value ? [flag] : [] if @kind == :switch

        flag ? ["#{flag}=#{value}#{@unit}"] : Array(value).map(&:to_s)
      end

      # The value from the words of a command line.
      def value(word)
        case @kind
        when :number then word.to_i
        when :words, :targets then Array(word)
        else word
        end
      end

      def list? = schema[:type] == "array"

      private

      # The files among what is given: what is neither a PID nor a file would be read as a file.
      def files(value)
        case @kind
        when :file then [value]
        when :target, :targets then Array(value).reject { |one| Tools.process?(one) }
        else []
        end
      end

      def expectation
        return "one of: #{@one_of.join(", ")}" if @one_of

        { number: "a whole number of at least 1", switch: "true or false", words: "a list of texts",
          targets: "a list of texts" }.fetch(@kind, "a text")
      end

      def valid?(value)
        case @kind
        when :number then value.is_a?(Integer) && value.between?(1, 1_000_000_000)
        when :switch then [true, false].include?(value)
        when :words, :targets then value.is_a?(Array) && value.any? && value.all? { |one| text?(one) }
        else text?(value) && (@one_of.nil? || @one_of.map(&:to_s).include?(value))
        end
      end

      def text?(value)
        value.is_a?(String) && value.length.between?(1, LONGEST) && value != "-" && !value.include?("\0")
      end
    end
  end
end
