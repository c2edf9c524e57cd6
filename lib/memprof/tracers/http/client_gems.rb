# frozen_string_literal: true

module Memprof
  module Tracers
    class Http < Client
      # Hooks into gems with their own HTTP implementation: excon, httpclient, curb, and ethon (for typhoeus).
      # Gems built on others, such as faraday and rest-client, are counted by those.
      module ClientGems
        # Scheme, host and port of a URL; the part before the host may contain a password.
        URL = %r{\A(\w+)://(?:[^/?\#@]*@)?(\[[^\]]*\]|[^/:?\#]*)(?::(\d+))?}
        PORTS = { "http" => 80, "https" => 443 }.freeze
        # libcurl's codes if a request was not sent: no proxy, no host, no connection.
        NOT_SENT = [5, 6, 7].freeze
        NOT_SENT_NAMES = %i[couldnt_resolve_proxy couldnt_resolve_host couldnt_connect].freeze
        private_constant :URL, :PORTS, :NOT_SENT, :NOT_SENT_NAMES

        def self.place(url)
          scheme, host, port = url.to_s.match(URL)&.captures
          [host.to_s, port || PORTS[scheme.to_s.downcase]]
        end

        # Whether a request of curb was sent.
        def self.sent?(easy) = !NOT_SENT.include?(easy.last_result)

        # Records a finished transfer. Nothing raised here reaches the program.
        def self.ended(easy)
          return if NOT_SENT_NAMES.include?(easy.return_code)

          Http.ended(*place(easy.effective_url), easy.response_code, easy.total_time.to_f)
        rescue StandardError
          nil
        end

        # Records a transfer of curb that a Curl::Multi has finished, except for a Curl::Easy that performs
        # alone, which is counted there. A transfer canceled before a response has no code.
        def self.multi_ended(multi, easy)
          return if Http.inside?(easy) || !multi.requests.value?(easy) || !sent?(easy)

          code = easy.response_code
          return if code.zero? && easy.last_result.zero?

          Http.ended(*place(easy.last_effective_url), code, easy.total_time.to_f)
        rescue StandardError
          nil
        end

        # Prepended to Excon::Connection.
        module Excon
          def request(params = {}, *)
            return super if Http.running.empty? || params[:pipeline]

            host, port = Native.quiet { data.values_at(:host, :port) }
            Http.request(host, port) { super }
          end
        end

        # Prepended to HTTPClient: each redirect passes through here, too.
        module HttpClient
          private

          def do_get_block(request, *)
            return super if Http.running.empty?

            uri = request.header.request_uri
            Http.request(uri.host, uri.port) { super }
          end
        end

        # Prepended to Curl::Easy.
        module Curb
          def perform
            return super if Http.running.empty?

            host, port = Native.quiet { ClientGems.place(url) }
            done = nil
            Http.request(host, port, self) do
              done = super
              response_code if response_code.positive?
            end
            done
          end
        end

        # Prepended to Curl::Multi, which removes each transfer when it has finished, before its callbacks.
        module CurbMulti
          def perform(*)
            return super if Http.running.empty?

            begin
              @memprof_performs = true
              super
            ensure
              @memprof_performs = false
            end
          end

          def remove(easy)
            Native.quiet { ClientGems.multi_ended(self, easy) } if @memprof_performs && !Http.running.empty?
            super
          end
        end

        # Prepended to Ethon::Easy, whose transfers may run concurrently.
        module Ethon
          def complete(*)
            Native.quiet { ClientGems.ended(self) } unless Http.running.empty?
            super
          end
        end
      end
      private_constant :ClientGems

      hook "Excon::Connection", ClientGems::Excon
      hook "HTTPClient", ClientGems::HttpClient
      hook "Curl::Easy", ClientGems::Curb
      hook "Curl::Multi", ClientGems::CurbMulti
      hook "Ethon::Easy", ClientGems::Ethon
    end
  end
end
