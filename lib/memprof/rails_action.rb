# frozen_string_literal: true

module Memprof
  # Which action of a Rails app has answered a request.
  module RailsAction
    # Its fields in a trace.
    PARTS = %i[controller action].freeze
    # Where Rails keeps controller and action: 2.2 and 2.3, 3 to 4, today.
    KEYS = %w[
      action_controller.request.path_parameters action_dispatch.request.parameters
      action_dispatch.request.path_parameters
    ].freeze
    private_constant :KEYS

    class << self
      # Controller and action; nil if there are none. To be asked at the end: it is the router that writes it.
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
