# frozen_string_literal: true

require "ipaddr"
require_relative "response"

module Memprof
  class Web
    # Checks of every request, and headers of every response. Access control is up to the {Gate}.
    class Security
      # Host names accepted in requests. A page of another site can have its own name resolve to this machine
      # (DNS rebinding), but can't make its requests carry an IP address or `localhost`.
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

      # Changes must come from a page of this program, or from a script that has a token.
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
          # Not "no-referrer": then browsers would hide the origin of the pages' own forms, too.
          "x-frame-options" => "DENY", "referrer-policy" => "same-origin",
          "cross-origin-opener-policy" => "same-origin", "cross-origin-resource-policy" => "same-origin"
        }
      end

      private

      # Browsers send the origin of a request in one of two headers (but no Origin from pages with a
      # no-referrer policy). Scripts send their token in a header that no form can set, and that browsers do
      # not add by themselves, unlike names and passwords.
      def own?(request)
        site = request.header("Sec-Fetch-Site")
        return site == "same-origin" if site

        origin = request.header("Origin")
        origin ? origin == request.origin : request.header("Authorization").to_s.start_with?("Bearer ")
      end
    end
  end
end
