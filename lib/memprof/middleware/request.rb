# frozen_string_literal: true

module Memprof
  class Middleware
    # One tracked request, from the call of the app to the end of its response. It is created before its
    # session opens, so that its own objects don't count, and the session is closed however the thread ends.
    class Request
      # Lists of callables that servers keep in the env and call after the response is sent: Rack 3's and
      # puma's.
      AFTER_RESPONSE = ["rack.response_finished", "rack.after_reply"].freeze

      # Stands in for a session that is closed elsewhere.
      module ClosedElsewhere
        def self.closed? = true
        def self.close = nil
      end
      private_constant :ClosedElsewhere

      # The finalizer of a body. Created here, where neither body nor request is in scope: it would retain
      # them.
      def self.closer(session) = ->(_id) { session.close }

      def initialize(middleware, sample)
        @middleware = middleware
        @lock = Lock.new
        @finished = false
        @followed = false
        @env = @status = nil
        @session = Session.prepare(scope: :thread, sample: sample)
      end

      # Calls the app; tracking continues after it only if the response has a body to be consumed.
      #
      # An interrupt can also arrive at a branch, so the last `ensure` has none: it closes whatever it finds.
      def run(app, env)
        @closing = @session
        @env = env
        app = MiniProfiler.new(app, @session) if defined?(::Rack::MiniProfiler) && MiniProfiler.profiles?
        begin
          @session.open
          response = app.call(env)
          @status = response.first if response.is_a?(Array)
          response = follow(response, env) unless complete?(response, env)
          response
        ensure
          # Also on `throw :async` and on an exception, which leave no response to follow.
          finish unless @followed
        end
      ensure
        @closing.close
      end

      # Ends tracking and prints the report once: on close, for the server or on an exception.
      def finish
        closing = @session # also for a caller interrupted before it knows
        closing = turn
        return if closing.closed?

        closing.finish
        @middleware.print(closing, @env, @status)
      ensure
        closing.close
      end

      # Follows a body until it is closed; if it is discarded unclosed, the session ends without a report.
      def wrap(body)
        wrapped = Body.new(self, body)
        ObjectSpace.define_finalizer(wrapped, self.class.closer(@session))
        wrapped
      end

      # Servers call their callables with or without arguments.
      def call(*) = finish

      private

      # The session, for the first caller.
      def turn
        @lock.synchronize do
          next ClosedElsewhere if @finished

          @finished = true
          @session
        end
      end

      # True if no code of the app runs after this: the body is a plain Array, or the connection was hijacked,
      # and then the server may never look at the body. (An Array with its own `close` does not count as
      # plain.)
      def complete?(response, env)
        return true unless response.is_a?(Array) && response.size == 3
        return true if env["rack.hijack_io"]

        body = response.last
        body.nil? || (body.instance_of?(Array) && !body.respond_to?(:close))
      end

      def follow(response, env)
        body = wrap(response.last)
        AFTER_RESPONSE.each do |key|
          list = env[key]
          list << self if list.is_a?(Array) && !list.frozen?
        end
        @followed = true
        @closing = ClosedElsewhere
        # A new Array: the app may store the one that it returned, and return it again.
        [response[0], response[1], body]
      end
    end

    # A response body that reports when it is closed and otherwise acts as the body it wraps: it responds to
    # the same methods (`each`, `call`, `to_path`, `to_ary`, whatever a framework adds), and otherwise only to
    # `close`.
    class Body
      def initialize(request, body)
        @request = request
        @body = body
        @closed = false
        @handed_on = false
      end

      # Closes the body, if it can be closed, and ends the request's tracking.
      def close
        return if @closed

        @closed = true
        begin
          @body.close if @body.respond_to?(:close)
        ensure
          @request.finish unless @handed_on
        end
      end

      private

      def respond_to_missing?(name, include_all) = @body.respond_to?(name, include_all)

      # Our private methods (`puts`, `open`) may be public ones of the body: they arrive here, too.
      def method_missing(name, ...)
        result = @body.public_send(name, ...)
        name == :to_ary ? taken(result) : result
      end

      # Rack: converting to an Array closes the body, so the server need not call `close`. But Rails returns
      # an Enumerator when it streams; that becomes the body, and it still has work to do, even after the
      # close that belongs to the conversion.
      def taken(array)
        return array if array.nil?

        @handed_on = !array.is_a?(Array)
        return array.tap { @request.finish } unless @handed_on

        ObjectSpace.undefine_finalizer(self)
        @request.wrap(array)
      end
    end
  end
end
