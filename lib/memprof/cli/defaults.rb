# frozen_string_literal: true

module Memprof
  module CLI
    # Default options of a command, from `.memprof.yml` in the working directory, or the file named by
    # MEMPROF_CONFIG:
    #
    #   run:
    #     stack: 16
    #     ignore-files: /gems/
    #   leaks:
    #     limit: 5
    class Defaults
      FILE = ".memprof.yml"
      private_constant :FILE

      def initialize(verb, path = ENV.fetch("MEMPROF_CONFIG", nil))
        @verb = verb
        @is_named = !path.nil?
        @path = path || FILE
      end

      # The options as command-line arguments.
      def arguments(flags)
        options = read.fetch(@verb, nil) || {}
        refuse("#{@verb} is not a table of options") unless options.is_a?(Hash)

        known = flags.flat_map { |flag| [flag.long, flag.was] }.compact
        options.flat_map { |name, value| written("--#{name.to_s.tr("_", "-")}", value, known) }
      end

      # Runs the block, attributing its errors to the file.
      def blame
        yield
      rescue UsageError => e
        raise UsageError, "#{@path}: #{e.message}"
      end

      private

      def written(name, value, known)
        unless known.include?(name)
          refuse("memprof #{@verb} has no option #{name}#{Suggestion.of(name, known)}")
        end

        case value
        when true then [name]
        when false, nil then known & [name.sub("--", "--no-")]
        when Array then value.flat_map { |one| written(name, one, known) }
        when String, Numeric, Symbol then ["#{name}=#{value}"]
        else refuse("#{name} of #{@verb} is neither a text nor a number")
        end
      end

      def read
        return {} if @path.empty? || (!@is_named && !File.file?(@path))

        require "yaml"
        commands = YAML.safe_load(File.read(@path, encoding: "UTF-8")) || {}
        refuse("it is not a table of commands") unless commands.is_a?(Hash)
        unknown = commands.keys - VERBS.keys
        near = Suggestion.of(unknown.first.to_s, VERBS.keys)
        refuse("unknown command #{unknown.first.inspect}#{near}") if unknown.any?

        commands
      rescue Psych::Exception, ArgumentError => e
        refuse(e.message.lines.first.chomp.delete_prefix("(<unknown>): "))
      rescue SystemCallError => e
        raise UsageError, "cannot read #{@path}: #{Output.reason(e)}"
      end

      def refuse(message)
        raise UsageError, "#{@path}: #{message}"
      end
    end
  end
end
