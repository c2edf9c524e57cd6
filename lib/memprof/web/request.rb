# frozen_string_literal: true

require "securerandom"
require "uri"
require_relative "../errors"

module Memprof
  class Web
    # The request is invalid: 400.
    class BadRequest < StandardError; end

    # The action is already in progress: 409.
    class Conflict < Error; end

    # Nothing has that name: 404.
    class NotFound < StandardError; end

    # A request, from the environment of Rack 2 or 3; the rack gem is not needed.
    class Request
      LONGEST_QUERY = 16_384
      LONGEST_FORM = 65_536
      private_constant :LONGEST_QUERY, :LONGEST_FORM

      attr_reader :env

      def initialize(env)
        @env = env
      end

      def verb = head? ? "GET" : @env["REQUEST_METHOD"]

      def head? = @env["REQUEST_METHOD"] == "HEAD"

      def script_name = @env["SCRIPT_NAME"].to_s

      def path
        path = @env["PATH_INFO"].to_s
        path.empty? ? "/" : path
      end

      def params
        @params ||= Request.decode(@env["QUERY_STRING"].to_s, LONGEST_QUERY)
      end

      def form
        @form ||= already_read ||
          Request.decode(@env["rack.input"]&.read(LONGEST_FORM + 1).to_s, LONGEST_FORM)
      end

      def header(name) = @env["HTTP_#{name.upcase.tr("-", "_")}"]

      def host = header("Host") || [@env["SERVER_NAME"], @env["SERVER_PORT"]].compact.join(":")

      def origin = "#{@env["rack.url_scheme"] || "http"}://#{host}"

      def cookie(name)
        pairs = header("Cookie").to_s.split(/;\s*/).map { |pair| pair.split("=", 2) }
        pairs.find { |key, _| key == name }&.last
      end

      def nonce
        @nonce ||= SecureRandom.urlsafe_base64(16)
      end

      # A form already read by middleware of the application can't be read again (Rails has
      # Rack::MethodOverride).
      def already_read
        fields = @env["rack.request.form_hash"]
        return unless fields.is_a?(Hash) && !fields.empty?

        fields = fields.select { |name, value| name.is_a?(String) && value.is_a?(String) }
        return fields if fields.values.all?(&:valid_encoding?)

        raise BadRequest, "parameters must be UTF-8"
      end
      private :already_read

      def self.decode(text, longest)
        raise BadRequest, "too long: the limit is #{longest} bytes" if text.bytesize > longest

        # Decoded as bytes: invalid UTF-8 would be replaced silently.
        pairs = URI.decode_www_form(text, Encoding::BINARY)
        pairs.each { |pair| pair.each { |part| part.force_encoding(Encoding::UTF_8) } }
        return pairs.to_h if pairs.flatten.all?(&:valid_encoding?)

        raise BadRequest, "parameters must be UTF-8"
      rescue ArgumentError
        raise BadRequest, "invalid parameters; expected a=1&b=2, with %XX for other characters"
      end
    end
  end
end
