# frozen_string_literal: true

module Memprof
  class Web
    class Server
      # The head of a request: its first line and its headers. Ambiguous heads are refused.
      class Head
        # A refused request, with the status that says why.
        class Invalid < StandardError
          attr_reader :status

          def initialize(status, message)
            super(message)
            @status = status
          end
        end

        LONGEST = 32_768
        ENDING = "\r\n\r\n"
        FIRST = %r{\A([A-Z]{1,20}) (?:https?://[^/ ]*)?(/[^ ?#]*)(?:\?([^ #]*))? HTTP/1\.([01])\z}n
        FIELD = /\A([!#$%&'*+.^`|~0-9A-Za-z_-]+):[ \t]*([^\0\r\n]*?)[ \t]*\z/n
        private_constant :LONGEST, :ENDING, :FIRST, :FIELD

        class << self
          def complete?(received)
            received.include?(ENDING) || received.bytesize > LONGEST || !received.match?(/\A[A-Z]/n)
          end

          def parse(received)
            head, rest = received.split(ENDING, 2)
            raise Invalid.new(431, "the head of this request is too large") if received.bytesize > LONGEST &&
              (rest.nil? || head.bytesize > LONGEST)

            first, *lines = head.to_s.split("\r\n", -1)
            match = FIRST.match(first.to_s) || raise(Invalid.new(400, "not an HTTP/1.1 request"))
            new(match, fields(lines), rest)
          end

          private

          def fields(lines)
            lines.each_with_object({}) do |line, fields|
              name, value = FIELD.match(line)&.captures
              raise Invalid.new(400, "a header of this request is malformed") unless name

              key = name.upcase.tr("-", "_")
              # Another name that maps to the same variable.
              next if name.include?("_")

              fields[key] =
                fields.key?(key) ? [fields[key], value].join(key == "COOKIE" ? "; " : ", ") : value
            end
          end
        end

        attr_reader :length, :rest

        def initialize(match, fields, rest)
          @verb, @path, @query, @minor = match.captures
          @fields = fields
          @rest = rest
          @length = check_length
        end

        def chunked? = @fields.key?("TRANSFER_ENCODING")

        def expects_continue? = @fields["EXPECT"].to_s.casecmp?("100-continue") && !old?

        def old? = @minor == "0"

        def head? = @verb == "HEAD"

        def environment
          named = @fields.to_h { |name, value| [special?(name) ? name : "HTTP_#{name}", value] }
          named.merge(
            "REQUEST_METHOD" => @verb, "SCRIPT_NAME" => "", "PATH_INFO" => @path,
            "QUERY_STRING" => @query.to_s,
            "SERVER_NAME" => @fields["HOST"].to_s[/\A(\[[^\]]*\]|[^:]*)/] || "localhost",
            "SERVER_PROTOCOL" => "HTTP/1.#{@minor}", "rack.url_scheme" => "http"
          )
        end

        private

        def special?(name) = %w[CONTENT_TYPE CONTENT_LENGTH].include?(name)

        def check_length
          length = @fields["CONTENT_LENGTH"]
          if chunked?
            raise Invalid.new(501, "unsupported transfer-encoding; expected chunked") unless
              @fields["TRANSFER_ENCODING"].casecmp?("chunked")
            raise Invalid.new(400, "the request has two lengths") if length || old?
          end
          return if length.nil?

          length.match?(/\A\d{1,18}\z/) ? length.to_i : raise(Invalid.new(400, "invalid content-length"))
        end
      end
    end
  end
end
