# frozen_string_literal: true

require "json"

module Memprof
  class Web
    # A response. Header names are lower case, which both Rack 2 and 3 accept.
    class Response
      attr_reader :headers, :status, :body

      def initialize(status, type, body, headers = {})
        @status = status
        @body = body.is_a?(String) ? [body] : body || []
        @headers = { "content-type" => type }.compact.merge(headers)
      end

      class << self
        def html(status, text)
          new(status, "text/html; charset=utf-8", text.to_str, "cache-control" => "no-store")
        end

        def json(status, data)
          text = JSON.generate(data, max_nesting: 0) << "\n"
          new(status, "application/json; charset=utf-8", text, "cache-control" => "no-store")
        end

        def text(status, text) = new(status, "text/plain; charset=utf-8", text, "cache-control" => "no-store")

        def redirect(location, headers = {})
          new(303, nil, nil, { "location" => location, "cache-control" => "no-store" }.merge(headers))
        end

        def download(name, type, body)
          safe = name.gsub(/[^\w.-]/, "_")
          new(200, type, body, "content-disposition" => %(attachment; filename="#{safe}"),
            "cache-control" => "no-store")
        end
      end

      def to_rack(head: false) = [@status, @headers, head ? [] : @body]
    end
  end
end
