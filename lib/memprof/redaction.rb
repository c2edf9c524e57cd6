# frozen_string_literal: true

require_relative "printable"

module Memprof
  # Redacts secrets in query strings: the values of parameters whose names Rails filters in a new application,
  # or that match the application's `filter_parameters`.
  module Redaction
    FILTERED = "[FILTERED]"
    SECRET = /passw|secret|token|_key|api-?key|crypt|salt|certificate|otp|ssn|auth|session|signature|cvv|cvc|
              jwt|csrf|xsrf|\Asig\z/ix
    # Where Rails stores the application's filters; procs need the complete parameters, and are not called.
    RAILS = "action_dispatch.parameter_filter"
    private_constant :SECRET, :RAILS

    class << self
      # Redacts the query string of a Rack env.
      def query(text, env)
        own = patterns(env)
        Printable.utf8(text).split(/([&;])/).map { |part| part.include?("=") ? pair(part, own) : part }.join
      end

      # Redacts a URI, or a path with a query string.
      def uri(text, env)
        path, query = Printable.utf8(text).split("?", 2)
        query ? "#{path}?#{query(query, env)}" : path.to_s
      end

      private

      def pair(text, own)
        name = text[/\A[^=]*/]
        plain = decoded(name)
        # Rails joins nested names with dots, as "card.code".
        dotted = plain.tr("[", ".").delete("]")
        secret = [SECRET, *own].any? { |pattern| pattern.match?(plain) || pattern.match?(dotted) }
        secret ? "#{name}=#{FILTERED}" : text
      end

      # Without the gem uri, as the program's lockfile may have another version of it.
      def decoded(name)
        Printable.utf8(name.b.tr("+", " ").gsub(/%(\h\h)/n) { Regexp.last_match(1).hex.chr })
      end

      def patterns(env)
        Array(env[RAILS]).filter_map do |filter|
          case filter
          when Regexp then filter
          when String, Symbol then /#{Regexp.escape(filter.to_s)}/i
          end
        end
      end
    end
  end
end
