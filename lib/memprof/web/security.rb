# frozen_string_literal: true

require "ipaddr"
require_relative "response"

module Memprof
  class Web
    # What every request is checked for, and what every answer carries. Who may see anything at all is for the
    # {Gate}.
    class Security
      # Names under which the program may be asked for. A page of another site can have its own name lead to
      # this machine (DNS rebinding), but it can't have its requests carry a number or `localhost`.
      class Hosts
        def initialize(names = [])
          @names = ["localhost", *names].map(&:downcase)
        end

        def include?(host)
          name = host.downcase.sub(/:\d+\z/, "")
          @names.include?(name) || address?(name)
        end

        private

        def address?(name)
          IPAddr.new(name.delete_prefix("[").delete_suffix("]"))
          true
        rescue IPAddr::Error
          false
        end
      end

      def initialize(hosts = nil)
        @hosts = hosts
      end

      def refusal(request)
        return if @hosts.nil? || @hosts.include?(request.host)

        Response.text(403,
          "unknown host name #{request.host.inspect}; see `memprof web --host`\n")
      end

      # What changes something must come from a page of this program, or from a script that has a token.
      def cross_site_refusal(request)
        return if request.verb == "GET" || own?(request)

        Response.text(403, "the request came from another site\n")
      end

      def self.headers(request)
        nonce = request.nonce
        policy = "default-src 'none'; script-src 'nonce-#{nonce}'; style-src 'nonce-#{nonce}'; " \
                 "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; " \
                 "frame-ancestors 'none'"
        {
          "content-security-policy" => policy, "x-content-type-options" => "nosniff",
          # Not "no-referrer": with that browsers hide the origin of the pages' own forms, too.
          "x-frame-options" => "DENY", "referrer-policy" => "same-origin",
          "cross-origin-opener-policy" => "same-origin", "cross-origin-resource-policy" => "same-origin"
        }
      end

      private

      # Browsers say where a request comes from, in one way or the other (not the second one of pages whose
      # policy is to have no referrer). Scripts carry their token in a header that no form can set, and that
      # browsers do not add by themselves, as they do with names and passwords.
      def own?(request)
        site = request.header("Sec-Fetch-Site")
        return site == "same-origin" if site

        origin = request.header("Origin")
        origin ? origin == request.origin : request.header("Authorization").to_s.start_with?("Bearer ")
      end
    end
  end
end
