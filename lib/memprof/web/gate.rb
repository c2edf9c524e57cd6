# frozen_string_literal: true

require "digest"
require "securerandom"
require "uri"
require_relative "response"

module Memprof
  class Web
    # Compares secrets.
    module Secret
      # Takes a time that reveals neither where they differ nor the length of the right one.
      def self.same?(given, right)
        return false if given.nil?

        left = Digest::SHA256.digest(given).bytes
        left.zip(Digest::SHA256.digest(right).bytes).reduce(0) { |sum, (a, b)| sum | (a ^ b) }.zero?
      end
    end

    # Access control. A gate has one method, `answer(request)`: nil admits the request, a {Response} is sent
    # instead of the page.
    module Gate
      # Admits no one, and does not reveal that anything is there.
      class Closed
        def answer(_request) = Response.text(404, "Not found\n")
      end

      # Admits clients with the token: in the address once, then in a cookie that no script and no other site
      # can use. The token is removed from the address, as history and screenshots would show it.
      #
      # A generated token works once. A token chosen by the user always works, and scripts may send it as
      # `Authorization: Bearer TOKEN`.
      class Token
        attr_reader :token

        def initialize(token = nil, hidden: false)
          @chosen = !token.nil?
          @hidden = hidden
          @token = token || SecureRandom.urlsafe_base64(24)
          # The workers of one server must accept each other's cookies.
          @secret = @chosen ? derived("secret", 43) : SecureRandom.urlsafe_base64(32)
          # Cookies ignore ports: several servers of one machine need distinct names.
          @cookie = "memprof_#{@chosen ? derived("name", 8) : SecureRandom.hex(4)}"
          @lock = Mutex.new
          @redeemed = false
        end

        def answer(request)
          given = request.params["token"]
          known = Secret.same?(request.cookie(@cookie), @secret) || bearer?(request)
          return known ? nil : refusal if given.nil?
          return grant(request) if known || redeem(given)

          refusal
        end

        def inspect = "#<#{self.class}>"

        private

        def grant(request)
          rest = request.params.except("token")
          query = "?#{URI.encode_www_form(rest)}" unless rest.empty?
          place = request.script_name.empty? ? "/" : request.script_name
          # A path that begins with two slashes would be another host.
          path = request.path.sub(%r{\A[/\\]+}, "/")
          secure = "; Secure" if request.origin.start_with?("https:")
          Response.redirect("#{request.script_name}#{path}#{query}",
            "set-cookie" => "#{@cookie}=#{@secret}; Path=#{place}; HttpOnly; SameSite=Strict#{secure}")
        end

        def derived(purpose, length) = Digest::SHA256.hexdigest("memprof #{purpose}\0#{@token}")[0, length]

        def refusal
          return Closed.new.answer(nil) if @hidden

          Response.text(403, "memprof needs its token: open the URL that `memprof web` printed. It works " \
                             "once; restart memprof for a new one, or choose one with --token.\n")
        end

        def redeem(given)
          return false unless Secret.same?(given, @token)
          return true if @chosen

          @lock.synchronize { !@redeemed && (@redeemed = true) }
        end

        def bearer?(request)
          @chosen && Secret.same?(request.header("Authorization")&.delete_prefix("Bearer "), @token)
        end
      end

      # In an application: admits requests that its block permits, and clients with its token. All others get
      # 404. `variable` names the token in the environment, `owner` is what has the block.
      class Mounted
        SHORTEST = 8 # characters of a token
        private_constant :SHORTEST

        # Whether a token may be used.
        def self.strong?(token) = token.is_a?(String) && token.length >= SHORTEST

        def initialize(environment = ENV, variable: "MEMPROF_WEB_TOKEN", owner: "Memprof::Web")
          @environment = environment
          @variable = variable
          @owner = owner
          @closed = Closed.new
          @lock = Mutex.new
        end

        def permit(&block)
          @permitted = block
        end

        def permits? = !@permitted.nil?

        # Whether no request at all is admitted.
        def closed? = !permits? && token.nil?

        def token=(token)
          unless token.nil? || Mounted.strong?(token)
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

        # A block that fails does not permit. Its exception is logged for the application's operator.
        def permitted?(request)
          @permitted&.call(request.env)
        rescue StandardError, ScriptError => e
          log(request, "the block of #{@owner}.permit raised #{e.class}: #{e.message.lines.first}")
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
          token = @environment[@variable].to_s
          return if token.empty?
          return Token.new(token, hidden: true) if Mounted.strong?(token)

          warn "memprof: invalid #{@variable}; expected at least #{SHORTEST} characters"
          nil
        end

        def log(request, message) = request.env["rack.errors"]&.write("memprof: #{message.chomp}\n")
      end
    end
  end
end
