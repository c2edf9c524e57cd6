# frozen_string_literal: true

require "digest"
require "securerandom"
require "uri"
require_relative "../response"
require_relative "../secret"

module Memprof
  class Web
    module Gate
      # Lets in who has the token: in the address once, from then on in a cookie that no script and no other
      # site can use. The token does not stay in the address, where history and screen shots have it.
      #
      # A token that was made up here opens once. One that the user chose opens always, and scripts may send
      # it as `Authorization: Bearer TOKEN`.
      class Token
        attr_reader :token

        def initialize(token = nil, hidden: false)
          @chosen = !token.nil?
          @hidden = hidden
          @token = token || SecureRandom.urlsafe_base64(24)
          # The workers of one server must take each other's cookies.
          @secret = @chosen ? derived("secret", 43) : SecureRandom.urlsafe_base64(32)
          # Cookies know no ports: several servers of one machine need names of their own.
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
          # With two slashes at its beginning a path would be another host.
          path = request.path.sub(%r{\A[/\\]+}, "/")
          secure = "; Secure" if request.origin.start_with?("https:")
          Response.redirect("#{request.script_name}#{path}#{query}",
            "set-cookie" => "#{@cookie}=#{@secret}; Path=#{place}; HttpOnly; SameSite=Strict#{secure}")
        end

        def derived(purpose, length)
          Digest::SHA256.hexdigest("memprof #{purpose}\0#{@token}")[0, length]
        end

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
    end
  end
end
