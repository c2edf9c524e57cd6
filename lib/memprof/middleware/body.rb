# frozen_string_literal: true

module Memprof
  class Middleware
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
