# frozen_string_literal: true

require_relative "../byte_size"
require_relative "../printable"
require_relative "switch"

module Memprof
  module Agent
    # The settings of the agent: those that the program gives, and those of MEMPROF_AGENT, which win.
    class Settings
      # A setting: its default, what reads a value (as Ruby or as text of MEMPROF_AGENT), what a value must be,
      # and a sentence for the documentation. `text` is false for settings that only code can give.
      Setting = Struct.new(:name, :default, :must, :sentence, :text, :read, keyword_init: true)

      # Returned by a reader for a value that it does not accept.
      INVALID = Object.new.freeze
      NONE = %w[none nil].freeze
      private_constant :Setting, :INVALID, :NONE

      # Readers by kind.
      module Read
        module_function

        def number(range)
          lambda do |value|
            value = Float(value, exception: false) if value.is_a?(String)
            value.is_a?(Numeric) && value.real? && range.cover?(value) ? value : INVALID
          end
        end

        def integer(range)
          lambda do |value|
            value = Integer(value, 10, exception: false) if value.is_a?(String)
            value.is_a?(Integer) && range.cover?(value) ? value : INVALID
          end
        end

        def optional(reader) = ->(value) { none?(value) ? nil : reader.call(value) }

        def size
          lambda do |value|
            bytes = ByteSize.read(value)
            bytes.positive? ? bytes : INVALID
          rescue ArgumentError
            INVALID
          end
        end

        # A share of memory.max, such as "90%", or a size.
        def limit
          lambda do |value|
            share = value[/\A\s*(\d{1,3}(?:\.\d+)?)\s*%\s*\z/, 1] if value.is_a?(String)
            next size.call(value) unless share

            share.to_f.between?(1, 100) ? Rational(share) / 100 : INVALID
          end
        end

        def word(*known)
          lambda do |value|
            found = known.find { |one| one.to_s == value.to_s }
            found.nil? ? INVALID : found
          end
        end

        def text = ->(value) { value.is_a?(String) && !value.strip.empty? ? value.strip : INVALID }

        def path
          lambda do |value|
            value = value.to_path if value.respond_to?(:to_path)
            value.is_a?(String) && !value.empty? && !value.include?("\0") ? File.expand_path(value) : INVALID
          end
        end

        def callable = ->(value) { value.nil? || value.respond_to?(:call) ? value : INVALID }

        def logger
          lambda do |value|
            next nil if none?(value)
            next value.to_sym if %w[auto stderr].include?(value.to_s)

            value.respond_to?(:info) && value.respond_to?(:warn) && !value.is_a?(String) ? value : INVALID
          end
        end

        def none?(value) = value.nil? || value == false || NONE.include?(value)
      end
      private_constant :Read

      # All settings, in the order of the documentation.
      TABLE = [
        [:interval, 60, "seconds, 0.1 to 86400", Read.number(0.1..86_400),
         "length of an interval"],
        [:intervals, 60, "a whole number, 1 to 10000", Read.integer(1..10_000),
         "intervals to keep; older ones are dropped"],
        [:share, 0.01, "a number above 0, at most 1", Read.number(1e-6..1),
         "share of the time in which allocations are recorded"],
        [:stack, 64, "a whole number, 1 to 2048", Read.integer(1..2048),
         "frames to record of each call stack"],
        [:malloc, 512 * 1024, 'a size such as "512KiB", or none', Read.optional(Read.size),
         "record a call of malloc each time so many bytes are allocated, on average; none: record no malloc"],
        [:budget, 0.01, "a number above 0, at most 1", Read.number(1e-6..1),
         "share of a CPU that the agent may use; above that in several intervals, it switches itself off"],
        [:limit, nil, 'a share such as "90%", a size such as "1GiB", or none', Read.optional(Read.limit),
         "memory at which evidence is written: a share of what the cgroup may use, or RSS of the process"],
        [:pressure, nil, "a number above 0, at most 100, or none", Read.optional(Read.number(0.01..100)),
         "memory pressure at which evidence is written: `some avg10` of PSI, in percent"],
        [:check, 5, "seconds, 0.05 to 3600", Read.number(0.05..3600),
         "seconds between two looks at `limit` and `pressure`"],
        [:cooldown, 3600, "seconds, 0 or more", Read.number(0..Float::INFINITY),
         "seconds in which evidence is written once"],
        [:directory, nil, "a path", Read.optional(Read.path),
         "directory of evidence; by default `memprof/agent` below `XDG_STATE_HOME`, or `memprof-agent-UID` " \
         "in the directory for temporary files"],
        [:keep, 5, "a whole number, 1 to 1000", Read.integer(1..1000),
         "how often evidence is kept; the oldest is removed"],
        [:dump, :auto, "auto, true or false", Read.word(:auto, true, false),
         "write a heap dump as evidence, too; auto: if disk and memory have room for it"],
        [:values, :none, "full, truncate, hash, length or none",
         Read.word(:full, :truncate, :hash, :length, :none),
         "how that dump contains the values of strings, as `values:` of `Memprof.dump_all`"],
        [:logger, :auto, "a logger, auto, stderr or none", Read.logger,
         "where the agent logs; auto: the logger of Rails, else standard error"],
        [:service, nil, "a text", Read.optional(Read.text), "label; by default the application's name"],
        [:release, nil, "a text", Read.optional(Read.text), "label; by default what the deployment says"],
        [:on_limit, nil, "callable", Read.callable, "called with the paths of the evidence", false]
      ].to_h do |name, default, must, read, sentence, text = true|
        [name, Setting.new(name: name, default: default, must: must, read: read, sentence: sentence,
          text: text).freeze]
      end.freeze

      # Mistakes in MEMPROF_AGENT: the defaults apply.
      attr_reader :problems

      # Raises ArgumentError for a mistake in `given`.
      def initialize(given = {}, env: ENV)
        @problems = []
        @values = TABLE.transform_values(&:default)
        given.each { |name, value| @values[name.to_sym] = checked(name, value) }
        Switch.settings(env).each { |text| read_text(text) }
        @values.freeze
      end

      def [](name) = @values.fetch(name)
      def to_h = @values

      private

      def checked(name, value)
        setting = TABLE[name.to_s.to_sym] or raise ArgumentError, unknown(name)
        read = setting.read.call(value)
        return read unless read.equal?(INVALID)

        raise ArgumentError, "#{name} must be #{setting.must} (got #{Printable.line(value.inspect)})"
      end

      def read_text(text)
        name, equals, value = text.partition("=")
        raise ArgumentError, "#{text.inspect} is neither on, off, nor name=value" if equals.empty?

        setting = TABLE[name.strip.to_sym] or raise ArgumentError, unknown(name.strip)
        raise ArgumentError, "#{name} can be set in Ruby only" unless setting.text

        @values[setting.name] = checked(setting.name, value.strip)
      rescue ArgumentError => e
        @problems << "#{Switch::VARIABLE}: #{Printable.line(e.message)}"
      end

      # The spell checker is loaded only where a mistake was made.
      def unknown(name)
        require_relative "../cli/suggestion"
        names = TABLE.keys.map(&:to_s)
        near = CLI::Suggestion.of(name.to_s, names)
        near = "; expected one of: #{names.join(", ")}" if near.empty?
        "unknown setting #{name.to_s.inspect}#{near}"
      end
    end
  end
end
