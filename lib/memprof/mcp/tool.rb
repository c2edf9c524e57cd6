# frozen_string_literal: true

module Memprof
  module MCP
    # A question that a client can ask: its description, its arguments, and the command that answers.
    class Tool
      attr_reader :name, :verb, :parameters

      # `verb` is a command, or a class that answers what none does. `guarded` says of arguments whether the
      # server must have been started with --allow, and `live` are further defaults then; `words` are on each
      # command line.
      def initialize(name, title, description, verb, parameters, guarded: ->(_) { false }, changes: false,
        words: [], live: {})
        @name = name
        @title = title
        @description = description
        @verb = verb
        @parameters = parameters
        @guarded = guarded
        @changes = changes
        @words = words
        @live = live
      end

      def guarded?(arguments) = @guarded.call(arguments)

      def parameter(name) = parameters.find { |one| one.name == name }

      # The arguments, with those that are not given.
      def complete(arguments)
        defaults = parameters.select(&:default).to_h { |one| [one.name, one.default] }
        defaults.merge(guarded?(arguments) ? @live : {}, arguments)
      end

      # As tools/list describes it. Without --allow, no tool changes anything.
      def to_h(allowed)
        changes = allowed && @changes
        { name: name, title: @title, description: @description, inputSchema: schema,
          annotations: { title: @title, readOnlyHint: !changes, destructiveHint: changes,
                         idempotentHint: !changes, openWorldHint: changes } }
      end

      def schema
        required = parameters.select(&:required?).map(&:name)
        schema = { type: "object", properties: parameters.to_h { |one| [one.name, one.schema] } }
        schema[:required] = required unless required.empty?
        schema.merge(additionalProperties: false)
      end

      # Raises Parameter::Invalid unless the arguments fit.
      def check(arguments)
        unknown = arguments.keys - parameters.map(&:name)
        known = parameters.map(&:name).join(", ")
        raise Parameter::Invalid, "unknown argument #{unknown.first.inspect}; known: #{known}" if unknown.any?

        parameters.each do |parameter|
          if arguments.key?(parameter.name) then parameter.check(arguments[parameter.name])
          elsif parameter.required? then raise Parameter::Invalid, "#{parameter.name} is missing"
          end
        end
      end

      # The command line for the arguments, without the verb.
      def command_line(arguments)
        given = parameters.reject(&:own?).select { |one| arguments.key?(one.name) }
        options, others = given.partition(&:flag)
        words = ->(list) { list.flat_map { |one| one.words(arguments[one.name]) } }
        [*@words, *words.call(options), "--", *words.call(others)]
      end

      # The arguments for a command line, as commands suggest it; nil if this tool can't ask that.
      def arguments(line)
        rest = line - @words
        found = {}
        while (at = rest.index { |word| word.start_with?("--") })
          parameter = parameters.find { |one| one.flag == rest[at] } or return
          switch = parameter.schema[:type] == "boolean"
          found[parameter.name] = switch ? true : parameter.value(rest[at + 1])
          rest = rest.take(at) + rest.drop(at + (switch ? 1 : 2))
        end
        places(rest)&.merge(found)
      end

      private

      # The last argument may be a list.
      def places(words)
        found = {}
        parameters.reject { |one| one.flag || one.own? }.each do |parameter|
          break if words.empty?

          found[parameter.name] = parameter.value(parameter.list? ? words : words.first)
          words = parameter.list? ? [] : words.drop(1)
        end
        found if words.empty?
      end
    end
  end
end
