# frozen_string_literal: true

require "memprof"
require_relative "trace"
require_relative "trace/process_file"

module Memprof
  # Traces the actions of a Rails controller, as {Tracer} does whole requests: for an application in which one
  # controller is of interest, or one so old (Rails 2.2) that it has no middleware.
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
  module Filter
    # Where Rails of all times and {Trace::Request} look.
    PARAMETERS = "action_controller.request.path_parameters"
    private_constant :PARAMETERS

    @file = Trace::ProcessFile.new

    class << self
      # Traces what a block does for a controller, and adds a line to the file that {Tracer} writes, or to
      # {Memprof.trace_filename}.
      #
      # @param controller [#request] with `request.env` and `request.path_parameters`
      # @yield runs the action
      # @return [Object] the block's value
      # @raise [Error] if the file can't be written
      # @example
      #   Request = Struct.new(:env, :path_parameters)
      #   Controller = Struct.new(:request)
      #   request = Request.new({ "PATH_INFO" => "/" }, { "controller" => "home", "action" => "index" })
      #   Memprof::Filter.filter(Controller.new(request)) { :done } # => :done
      def filter(controller, &block)
        request = controller.request
        env = request.env.merge(PARAMETERS => request.path_parameters)
        status = -> { code(controller) }
        Trace::Request.trace(env, @file.journal, Trace.new, status: status, &block)
      end

      # What `around_action` and `around_filter` call.
      #
      # @param controller (see #filter)
      # @yield (see #filter)
      # @return (see #filter)
      # @raise (see #filter)
      # @example
      #   # in a controller: around_action Memprof::Filter
      def around(controller, &block)
        filter(controller, &block)
      end

      private

      # Old controllers say "200 OK".
      def code(controller)
        response = controller.response if controller.respond_to?(:response)
        response.status.to_s[/\A\d+/] if response.respond_to?(:status)
      end
    end
  end
end
