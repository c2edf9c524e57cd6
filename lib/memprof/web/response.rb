# frozen_string_literal: true

require "json"

module Memprof
  class Web
    # What goes back. Names of headers are lower case, which both Rack 2 and 3 take.
    #
    # @api private
    class Response
      # @return [Hash{String => String}]
      attr_reader :headers
      # @return [Integer]
      attr_reader :status
      # @return [Array<String>, #each]
      attr_reader :body

      # @param status [Integer]
      # @param type [String, nil] of the body
      # @param body [String, #each, nil]
      # @param headers [Hash{String => String}]
      def initialize(status, type, body, headers = {})
        @status = status
        @body = body.is_a?(String) ? [body] : body || []
        @headers = { "content-type" => type }.compact.merge(headers)
      end

      class << self
        # @return [Response] a page
        def html(status, text)
          new(status, "text/html; charset=utf-8", text.to_str, "cache-control" => "no-store")
        end

        # @return [Response]
        def json(status, data)
          text = JSON.generate(data, max_nesting: 0) << "\n"
          new(status, "application/json; charset=utf-8", text, "cache-control" => "no-store")
        end

        # @return [Response]
        def text(status, text)
          new(status, "text/plain; charset=utf-8", text, "cache-control" => "no-store")
        end

        # @param location [String] with the SCRIPT_NAME
        # @return [Response] which sends the browser elsewhere, with GET
        def redirect(location, headers = {})
          new(303, nil, nil, { "location" => location, "cache-control" => "no-store" }.merge(headers))
        end

        # @param name [String] of the file that the browser keeps
        # @param type [String]
        # @param body [String, #each]
        # @return [Response]
        def download(name, type, body)
          safe = name.gsub(/[^\w.-]/, "_")
          new(200, type, body, "content-disposition" => %(attachment; filename="#{safe}"),
            "cache-control" => "no-store")
        end
      end

      # @param head [Boolean] without the body
      # @return [Array] status, headers, body
      def to_rack(head: false)
        return [@status, @headers, @body] unless head

        @body.close if @body.respond_to?(:close)
        [@status, @headers, []]
      end
    end
  end
end
