# frozen_string_literal: true

module Memprof
  # The action of a Rails app that handled a request.
  module RailsAction
    # Its keys in a trace.
    PARTS = %i[controller action].freeze
    # Where Rails stores controller and action: 2.2 and 2.3, 3 to 4, today.
    KEYS = %w[
      action_controller.request.path_parameters action_dispatch.request.parameters
      action_dispatch.request.path_parameters
    ].freeze
    private_constant :KEYS

    class << self
      # Controller and action, or nil. Must be called at the end: the router sets them.
      def of(env)
        KEYS.each do |key|
          names = named(env[key])
          return names if names
        end
        nil
      end

      private

      def named(parameters)
        return unless parameters.is_a?(Hash)
        return unless parameters.key?("controller") || parameters.key?(:controller)

        PARTS.map { |name| parameters[name.name] || parameters[name] }
      end
    end
  end
end
