# frozen_string_literal: true

require_relative "../byte_size"
require_relative "../printable"
require_relative "switch"

module Memprof
  module Agent
    # The settings of the agent: those that the program gives, and those of MEMPROF_AGENT, which win.
    class Settings
      # A setting: its default, what reads a value (of Ruby, or text of MEMPROF_AGENT), what a value must be,
      # a sentence for the documentation, and whether MEMPROF_AGENT can have it.
      Setting = Struct.new(:name, :default, :read, :must, :sentence, :text, keyword_init: true)

      # Returned by a reader for a value that it does not accept.
      INVALID = Object.new.freeze
      NONE = %w[none nil].freeze
      private_constant :Setting, :INVALID, :NONE

      # Readers by kind.
      module Read
        module_function

        def number(range)
          ->(value) do
            value = Float(value, exception: false) if value.is_a?(String)
            value.is_a?(Numeric) && value.real? && range.cover?(value) ? value : INVALID
          end
        end

        def integer(range)
          ->(value) do
            value = Integer(value, 10, exception: false) if value.is_a?(String)
            value.is_a?(Integer) && range.cover?(value) ? value : INVALID
          end
        end

        def optional(reader) = ->(value) { none?(value) ? nil : reader.call(value) }

        def size
          ->(value) do
            bytes = ByteSize.read(value)
            bytes.positive? ? bytes : INVALID
          rescue ArgumentError
            INVALID
          end
        end

        # A share of memory.max, such as "90%", or a size.
        def limit
          ->(value) do
            share = value[/\A\s*(\d{1,3}(?:\.\d+)?)\s*%\s*\z/, 1] if value.is_a?(String)
            next size.call(value) unless share

            share.to_f.between?(1, 100) ? Rational(share) / 100 : INVALID
          end
        end

        def word(*known)
          ->(value) do
            found = known.find { |one| one.to_s == value.to_s }
            found.nil? ? INVALID : found
          end
        end

        def text = ->(value) { value.is_a?(String) && !value.strip.empty? ? value.strip : INVALID }

        def path
          ->(value) do
            value = value.to_path if value.respond_to?(:to_path)
            value.is_a?(String) && !value.empty? && !value.include?("\0") ? File.expand_path(value) : INVALID
          end
        end

        def callable = ->(value) { value.nil? || value.respond_to?(:call) ? value : INVALID }

        def logger
          ->(value) do
            next nil if none?(value)
            next value.to_sym if %w[auto stderr].include?(value.to_s)

            value.respond_to?(:info) && value.respond_to?(:warn) && !value.is_a?(String) ? value : INVALID
          end
        end

        def none?(value) = value.nil? || value == false || NONE.include?(value)
      end
      private_constant :Read

      # All settings by name, in the order of the documentation.
      TABLE = {}

      # Adds a setting to the table.
      def self.setting(name, default, read, must:, sentence:, text: true)
        TABLE[name] = Setting.new(name: name, default: default, read: read, must: must, sentence: sentence,
          text: text).freeze
      end
      private_class_method :setting

      setting :interval, 60, Read.number(0.1..86_400), must: "seconds, 0.1 to 86400",
        sentence: "seconds of an interval"
      setting :intervals, 60, Read.integer(1..10_000), must: "a whole number, 1 to 10000",
        sentence: "how many intervals to retain; the oldest is dropped"
      setting :share, 0.01, Read.number(1e-6..0.5), must: "a number above 0, at most 0.5",
        sentence: "share of the time in which allocations are recorded"
      setting :stack, 64, Read.integer(1..512), must: "a whole number, 1 to 512",
        sentence: "how many frames of each call stack to record"
      setting :budget, 0.01, Read.number(1e-6..1), must: "a number above 0, at most 1",
        sentence: "share of a CPU that the agent may use before it switches itself off"
      setting :limit, nil, Read.optional(Read.limit),
        must: 'a share such as "90%", a size such as "1GiB", or none',
        sentence: "memory at which to write evidence: share of the cgroup's limit, or RSS"
      setting :pressure, nil, Read.optional(Read.number(0.01..100)),
        must: "a number above 0, at most 100, or none",
        sentence: "memory pressure at which to write evidence: `some avg10` of PSI, in percent"
      setting :check, 5, Read.number(0.05..3600), must: "seconds, 0.05 to 3600",
        sentence: "seconds between two looks at `limit` and `pressure`"
      setting :cooldown, 3600, Read.number(0..Float::INFINITY), must: "seconds, 0 or more",
        sentence: "seconds until evidence may be written again"
      setting :directory, nil, Read.optional(Read.path), must: "a path",
        sentence: "agent's files; by default `memprof/agent` below `XDG_STATE_HOME`, or a temporary directory"
      setting :keep, 10, Read.integer(1..1000), must: "a whole number, 1 to 1000",
        sentence: "how many sets of evidence to retain; the oldest is removed"
      setting :dump, :auto, Read.word(:auto, true, false), must: "auto, true or false",
        sentence: "whether evidence has a heap dump; auto: if there is room"
      setting :values, :none, Read.word(:full, :truncate, :hash, :length, :none),
        must: "full, truncate, hash, length or none",
        sentence: "how that dump has the values of strings, see `Memprof.dump_all`"
      setting :leaks, :show, Read.word(:show, :log, :off), must: "show, log or off",
        sentence: "growing lines; show: in `Memprof::Agent.leaks` and for subscribers; log: also in the log"
      setting :logger, :auto, Read.logger, must: "a logger, auto, stderr or none",
        sentence: "where to log; auto: Rails' logger, or else standard error"
      setting :service, nil, Read.optional(Read.text), must: "a text",
        sentence: "the label; by default the name of the application"
      setting :release, nil, Read.optional(Read.text), must: "a text",
        sentence: "the label; by default what the deployment says"
      setting :on_limit, nil, Read.callable, must: "callable, or nil", text: false,
        sentence: "called with the paths of the evidence"
      setting :listen, nil, Read.optional(Read.text), must: 'an address such as "127.0.0.1:9394", or none',
        sentence: "serve profiles and metrics there; for other machines only with a token"
      setting :profiles, nil, Read.optional(Read.path), must: "a path, or none",
        sentence: "directory to write each interval to, in pprof's format"
      TABLE.freeze

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
