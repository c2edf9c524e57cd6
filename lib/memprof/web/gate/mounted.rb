# frozen_string_literal: true

require_relative "token"

module Memprof
  class Web
    module Gate
      # In an application: lets in whom its block permits, and who has its token. To all others there is
      # nothing.
      class Mounted
        TOKEN = "MEMPROF_WEB_TOKEN"
        SHORTEST = 8 # characters of a token
        private_constant :TOKEN, :SHORTEST

        def initialize(environment = ENV)
          @environment = environment
          @closed = Closed.new
          @lock = Mutex.new
        end

        def permit(&block)
          @permitted = block
        end

        def token=(token)
          unless token.nil? || strong?(token)
            raise ArgumentError, "invalid token; expected a String of at least #{SHORTEST} characters"
          end

          @lock.synchronize do
            @given = true
            @token = token && Token.new(token, hidden: true)
          end
        end

        def answer(request)
          return if permitted?(request)

          (token || @closed).answer(request)
        end

        private

        # A block that fails has permitted nothing. What it raised is for who runs the application.
        def permitted?(request)
          @permitted&.call(request.env)
        rescue StandardError => e
          log(request, "the block of Memprof::Web.permit raised #{e.class}: #{e.message.lines.first}")
          false
        end

        def token
          @lock.synchronize do
            unless @given
              @given = true
              @token = from_environment
            end
            @token
          end
        end

        def from_environment
          token = @environment[TOKEN].to_s
          return if token.empty?
          return Token.new(token, hidden: true) if strong?(token)

          warn "memprof: invalid #{TOKEN}; expected at least #{SHORTEST} characters"
          nil
        end

        def strong?(token) = token.is_a?(String) && token.length >= SHORTEST

        def log(request, message) = request.env["rack.errors"]&.write("memprof: #{message.chomp}\n")
      end
    end
  end
end
