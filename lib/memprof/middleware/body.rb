# frozen_string_literal: true

module Memprof
  class Middleware
    # A response body that reports when it was closed and is otherwise the body that it wraps: it responds to
    # what that one responds to (`each`, `call`, `to_path`, `to_ary`, whatever a framework adds), and to
    # nothing else but `close`.
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

      # Private methods of ours (`puts`, `open`) may be public ones of the body: they arrive here too.
      def method_missing(name, ...)
        result = @body.public_send(name, ...)
        name == :to_ary ? taken(result) : result
      end

      # Rack: taking the Array closes the body, so the server need not call `close`. Rails gives an
      # Enumerator where it streams, though; that is then the body, and its work is still to be done, also
      # after the close that belongs to the taking.
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
