# frozen_string_literal: true

module Memprof
  class Web
    # The routes: paths of pages, and of their actions. Each page of `pages/` declares its own ({Page.at},
    # {Page.post}).
    class Router
      # A match: the page's class, the captured parts of the path, the format of the export that is wanted
      # ("json"), and the method that a POST calls.
      Match = Struct.new(:page, :captures, :format, :action)
      Route = Struct.new(:verb, :pattern, :page, :action)
      FORMATS = { "GET" => /\.(json|csv|md|svg)\z/, "POST" => /\.(json)\z/ }.freeze
      private_constant :Route, :FORMATS

      def self.standard
        @standard ||= begin
          Dir[File.join(__dir__, "pages", "*.rb")].sort.each { |file| require file }
          new(Page.all)
        end
      end

      def initialize(pages)
        @routes = pages.flat_map do |page|
          page.routes.map { |verb, path, action| Route.new(verb, Router.expression(path), page, action) }
        end
      end

      def find(verb, path)
        format = path[FORMATS.fetch(verb, /(?!)/), 1]
        path = path.delete_suffix(".#{format}") if format
        @routes.each do |route|
          next unless route.verb == verb && (found = route.pattern.match(path))

          captures = found.named_captures.to_h { |name, text| [name.to_sym, Router.decode(text)] }
          return Match.new(route.page, captures, format, route.action)
        end
        raise NotFound, "no such page"
      end

      def self.expression(path)
        parts = path.chomp("/").split("/").map do |part|
          part.start_with?(":") ? "(?<#{part.delete_prefix(":")}>[^/]+)" : Regexp.escape(part)
        end
        %r{\A#{parts.join("/")}/?\z}
      end

      def self.decode(text)
        bytes = text.b.gsub(/%(\h\h)/) { $1.hex.chr }
        decoded = bytes.force_encoding(Encoding::UTF_8)
        decoded.valid_encoding? ? decoded : raise(NotFound, "no such page")
      end
    end
  end
end
