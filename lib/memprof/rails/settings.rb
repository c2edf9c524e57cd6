# frozen_string_literal: true

module Memprof
  module Rails
    # `config.memprof` of a Rails application: settings of its own, and those of the agent. A mistake raises
    # ArgumentError where it is made, in the application's configuration.
    class Settings
      # Own settings, with their defaults.
      OWN = { enabled: false, requests: nil, web: nil, permit: nil }.freeze
      SWITCHES = [true, false, nil].freeze
      private_constant :OWN, :SWITCHES

      # The settings for Agent.start.
      attr_reader :agent

      def initialize
        @own = OWN.dup
        @agent = {}
      end

      def [](name)
        return @own[name.to_sym] if OWN.key?(name.to_sym)

        known(name)
        @agent[name.to_sym]
      end

      def []=(name, value)
        name = name.to_sym
        if OWN.key?(name)
          @own[name] = checked(name, value)
        else
          known(name)
          Agent::Settings.new({ name => value }, env: {})
          @agent[name] = value
        end
      end

      # Whether an agent is to start where Agent::Switch allows one.
      def enabled? = @own[:enabled] ? true : false

      # Whether actions and jobs are counted. By default, if there is an agent.
      def requests? = @own[:requests].nil? ? enabled? : @own[:requests]

      # Where Memprof::Web is mounted, or nil. Only a permit opens it outside of development.
      def web_path(development:)
        return if @own[:web] == false || !(development || @own[:permit])

        @own[:web] || "/memprof"
      end

      def respond_to_missing?(name, _private = false)
        key = name.to_s.delete_suffix("=").to_sym
        OWN.key?(key) || agent_names.include?(key)
      end

      def method_missing(name, *values)
        text = name.to_s
        return self[text.delete_suffix("=")] = values.first if text.end_with?("=")
        return super unless values.empty? && text.match?(/\A\w+\z/)

        self[name]
      end

      private

      def checked(name, value)
        must =
          case name
          when :permit then "callable, or nil" unless value.nil? || value.respond_to?(:call)
          when :web then 'a path such as "/memprof", or false' unless path?(value)
          else "true or false" unless SWITCHES.include?(value)
          end
        raise ArgumentError, "config.memprof.#{name} must be #{must}" if must

        value
      end

      def path?(value) = !value || (value.is_a?(String) && value.match?(%r{\A/[^/\s]}))

      def known(name)
        names = agent_names
        return if names.include?(name.to_sym)

        require_relative "../cli/suggestion"
        near = CLI::Suggestion.of(name.to_s, [*OWN.keys, *names].map(&:to_s))
        raise ArgumentError, "unknown setting config.memprof.#{name}#{near}"
      end

      def agent_names
        require_relative "../agent/settings"
        Agent::Settings::TABLE.keys
      end
    end
  end
end
