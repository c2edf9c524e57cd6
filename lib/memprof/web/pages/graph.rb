# frozen_string_literal: true

require "stringio"

module Memprof
  class Web
    module Pages
      # `/heaps/1/graph/0x7f..`: the references around an object. `expand` lists further objects whose
      # neighbors are shown, separated by commas; `format` (gml or dot) downloads the graph as a file.
      class Graph < HeapPage
        at "/heaps/:heap/graph/:address", place: "/heaps/:heap/objects/:address", assets: %w[graph.css]

        NODES = 60
        MOST_NODES = 200
        EACH = 8 # neighbours on each side
        TYPES = { "gml" => "text/plain; charset=us-ascii",
                  "dot" => "text/vnd.graphviz; charset=utf-8" }.freeze
        private_constant :NODES, :MOST_NODES, :EACH, :TYPES

        def title = "References around #{captures.fetch(:address)}"

        def command = command_line("show", captures.fetch(:address))

        def breadcrumbs
          address = captures.fetch(:address)
          [*super, [address, here("/objects/#{URI.encode_www_form_component(address)}")]]
        end

        def expanded = text(:expand).to_s.split(",").map(&:strip).reject(&:empty?)

        def data
          @data ||= ask(:neighbours, of: captures.fetch(:address), expand: expanded, each: EACH,
            limit: integer(:limit, NODES, max: MOST_NODES))
        end

        def download
          format = choice(:format, TYPES.keys, nil) or return

          addresses = data[:nodes].filter_map { |node| node[:address] }
          file = StringIO.new
          heap.export(file, format: format, where: "address in (#{addresses.join(", ")})")
          Response.download("#{addresses.first}.#{format}", TYPES.fetch(format), file.string)
        end
      end
    end
  end
end
