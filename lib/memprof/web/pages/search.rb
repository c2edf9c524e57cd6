# frozen_string_literal: true

module Memprof
  class Web
    module Pages
      # Takes an address (in a core file also one inside of an object), a class name, a file, a text or a
      # query, and redirects there.
      class Search < HeapPage
        at "/heaps/:heap/search", title: "Search"

        FOUND = 20
        ADDRESS = /\A(?:0x)?\h{6,16}\z/i
        PLACE = %r{\A(?<file>[^\s"']*[./][^\s"']*?)(?::(?<line>\d+))?\z}
        QUERY = /[=~<>()]|\s(?:in|is|and|or)\s|\A(?:not\s|!)/i
        # Boolean fields, which are queries by themselves.
        TRUTHS = %w[frozen shared embedded old singleton reachable leaked tracked unshared].freeze
        private_constant :FOUND, :ADDRESS, :PLACE, :QUERY, :TRUTHS

        def redirect
          wanted and (address || class_name || query)
        end

        def command = wanted && command_line("query", Filter.contains("name", wanted))

        def data
          return { q: nil } unless wanted

          {
            q: wanted,
            classes: top("type in (CLASS, MODULE) and not singleton and #{Filter.contains("name", wanted)}"),
            files: files, strings: top("type in (STRING, SYMBOL) and value ~ #{Filter.quoted(wanted)}")
          }
        end

        private

        def wanted = text(:q)&.strip

        def address
          return unless wanted.match?(ADDRESS)

          address = wanted.downcase.start_with?("0x") ? wanted.downcase : "0x#{wanted.downcase}"
          start = heap.at(address) ? address : around(address)
          here("/objects/#{start}") if start
        end

        # The beginning of the block or object that an address of a core file points into.
        def around(address)
          place = entry.core? ? entry.core.describe(address) : {}
          start = place[:start] || place[:object]
          start if start && heap.at(start)
        end

        def class_name
          found = [wanted, "<#{wanted}>"].find { |name| class?(name) }
          here("/classes/#{ERB::Util.url_encode(found)}") if found
        end

        # A kind of block has no object that is its class.
        def class?(name)
          heap.ask(:class, of: name)
          true
        rescue ArgumentError
          found = ask(:top, where: "class = #{Filter.quoted(name)}", limit: 0) if name.start_with?("<")
          !found.nil? && found[:count].positive?
        end

        # The page of queries shows an invalid query with the position of the error.
        def query
          return unless wanted.match?(QUERY) || TRUTHS.include?(wanted)

          objects(wanted)
        end

        def objects(where) = "#{here("/objects")}?#{URI.encode_www_form(where: where)}"

        def top(where) = ask(:top, where: where, limit: FOUND).merge(where: where)

        def files
          place = PLACE.match(wanted)
          file = Filter.quoted(place ? place[:file] : wanted)
          line = " and line = #{place[:line]}" if place && place[:line]
          where = "file ~ #{file}#{line}"
          ask(:histogram, by: line ? :line : :file, where: where, limit: FOUND).merge(where: where)
        end
      end
    end
  end
end
