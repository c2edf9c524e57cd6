# frozen_string_literal: true

require "memprof"
require_relative "../trace"
require_relative "../trace/requests"

module Memprof
  # Traces the actions of a Rails controller, as {Tracer} does whole requests: for an application in which
  # only one controller matters, or one so old (Rails 2.2) that it has no middleware.
  #
  # @example Rails
  #   class ApplicationController < ActionController::Base
  #     require "memprof/tracer"
  #     around_action Memprof::Filter
  #   end
  #
  # @example Rails 2
  #   class ApplicationController < ActionController::Base
  #     require "memprof/tracer"
  #     around_filter Memprof::Filter
  #   end
  #
  # @example Rails, one action in ten
  #   class ApplicationController < ActionController::Base
  #     require "memprof/tracer"
  #     around_action Memprof::Filter.with(one_in: 10)
  #   end
  module Filter
    # The key that all versions of Rails and {Trace::Request} use.
    PARAMETERS = "action_controller.request.path_parameters"
    private_constant :PARAMETERS

    # A filter with its own options.
    class Actions
      # @param options (see Filter.with)
      # @raise (see Filter.with)
      # @example
      #   Memprof::Filter::Actions.new(one_in: 10)
      def initialize(**options)
        @requests = Trace::Requests.new(**options)
      end

      # @param controller (see Filter.filter)
      # @yield (see Filter.filter)
      # @return (see Filter.filter)
      # @example
      #   Controller = Struct.new(:request)
      #   Request = Struct.new(:env, :path_parameters)
      #   controller = Controller.new(Request.new({ "PATH_INFO" => "/" }, {}))
      #   Memprof::Filter::Actions.new(path: "actions.json").filter(controller) { :done } # => :done
      def filter(controller, &block)
        status = ->(raised) { raised ? failure(controller, raised) : code(controller) }
        @requests.trace(env(controller), status: status, &block)
      end

      # @param controller (see Filter.filter)
      # @yield (see Filter.filter)
      # @return (see Filter.filter)
      # @example
      #   # in a controller: around_action Memprof::Filter.with(one_in: 10)
      def around(controller, &block) = filter(controller, &block)

      private

      def env(controller)
        request = controller.request
        request.env.merge(PARAMETERS => request.path_parameters)
      rescue StandardError => e
        @requests.failed(e)
        {}
      end

      # Old controllers return "200 OK".
      def code(controller)
        response = controller.response if controller.respond_to?(:response)
        response.status.to_s[/\A\d+/] if response.respond_to?(:status)
      end

      # The status that Rails responds with; unknown if the controller itself rescues the exception.
      def failure(controller, raised)
        return if controller.respond_to?(:handler_for_rescue) && controller.handler_for_rescue(raised)
        return 500 unless defined?(::ActionDispatch::ExceptionWrapper)

        ::ActionDispatch::ExceptionWrapper.status_code_for_exception(raised.class.name)
      end
    end

    @actions = Actions.new

    class << self
      # Traces a controller's block, and appends a line to {Tracer}'s file, or to {Memprof.trace_filename}. A
      # line that can't be written is reported once on stderr, and the action runs.
      #
      # @param controller [#request] with `request.env` and `request.path_parameters`
      # @yield runs the action
      # @return [Object] the block's value
      # @example
      #   Request = Struct.new(:env, :path_parameters)
      #   Controller = Struct.new(:request)
      #   request = Request.new({ "PATH_INFO" => "/" }, { "controller" => "home", "action" => "index" })
      #   Memprof::Filter.filter(Controller.new(request)) { :done } # => :done
      def filter(controller, &block) = @actions.filter(controller, &block)

      # Called by `around_action` and `around_filter`.
      #
      # @param controller (see #filter)
      # @yield (see #filter)
      # @return (see #filter)
      # @example
      #   # in a controller: around_action Memprof::Filter
      def around(controller, &block) = filter(controller, &block)

      # @param options [Hash{Symbol => Object}] `path:`, `scope:`, `tracers:`, `except:`, `max_size:`,
      #   `when_full:`, `one_in:`, `per_second:` and `lines:`, as {Tracer#initialize} takes them
      # @return [Actions] a filter with these options
      # @raise [ArgumentError] if an option is invalid
      # @example
      #   Memprof::Filter.with(path: "log/actions-%p.json", per_second: 50)
      def with(**options) = Actions.new(**options)
    end
  end
end
