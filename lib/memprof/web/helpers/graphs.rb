# frozen_string_literal: true

require_relative "../layers"

module Memprof
  class Web
    module Helpers
      # Objects and the references between them, drawn.
      module Graphs
        TITLE = 22 # characters in a box
        LABEL = 13 # characters beside a line
        private_constant :TITLE, :LABEL

        def reference_graph(nodes, edges, of)
          layers = Layers.new(nodes, edges)
          levels = nodes.to_h { |node| [node[:id], node[:level]] }
          lines = edges.map { |edge| graph_line(edge, layers, levels) }
          boxes = nodes.map { |node| graph_box(node, layers, node[:id] == of) }
          size = { width: layers.width, height: layers.height }
          drawing(Html.tag(:svg, graph_arrow, lines, boxes, class: "graph",
            viewBox: "0 0 #{size.values.join(" ")}", role: "group", aria_label: "References", **size))
        end

        def expand_url(node)
          expanded = [*page.expanded, node[:address]].uniq
          "#{same(expand: expanded.join(","))}##{graph_id(node)}"
        end

        def graph_url(node) = node[:address] && here("/graph/#{node[:address]}")

        private

        def graph_id(node) = "at-#{node[:address] || node[:id]}"

        def graph_arrow
          Html.tag(:defs, Html.tag(:marker, Html.tag(:path, d: "M0 0L8 4L0 8z"), id: "arrow", markerWidth: 8,
            markerHeight: 8, refX: 8, refY: 4, orient: "auto", markerUnits: "userSpaceOnUse"))
        end

        def graph_line(edge, layers, levels)
          times = " (#{plural(edge[:references], "reference")})" if edge[:references] > 1
          title = Html.tag(:title, "#{edge[:label] || "references"}#{times}")
          line = Html.tag(:path, d: layers.line(edge), marker_end: "url(#arrow)")
          Html.tag(:g, title, line, graph_label(edge, layers, levels), class: "line")
        end

        # At the end that is farther from the middle, where there is only one line.
        def graph_label(edge, layers, levels)
          from, to = edge.values_at(:from, :to).map { |id| levels[id] }
          return if edge[:label].nil? || from >= to

          at_end = to.abs >= from.abs
          x, y = layers[at_end ? edge[:to] : edge[:from]]
          x += at_end ? -10 : Layers::WIDTH + 6
          Html.tag(:text, cut(edge[:label], LABEL, 6), x: x, y: y + Layers::HEIGHT / 2 - 5,
            text_anchor: at_end ? "end" : "start")
        end

        def graph_box(node, layers, middle)
          x, y = layers[node[:id]]
          sizes = node[:address] ? "#{Units.bytes(node[:retained])} retained" : "root"
          text = [
            Html.tag(:title, "#{node[:text]}\n#{sizes}, shallow size #{Units.bytes(node[:size])}"),
            Html.tag(:rect, x: x, y: y, width: Layers::WIDTH, height: Layers::HEIGHT, rx: 5),
            Html.tag(:text, cut(node[:text], TITLE), x: x + 10, y: y + 16),
            Html.tag(:text, sizes, x: x + 10, y: y + 30, class: "size")
          ]
          box = Html.tag(:a, text, href: node[:address] && object_url(node[:address]))
          style = ["node", ("middle" if middle), "of-#{graph_kind(node)}"].compact.join(" ")
          Html.tag(:g, box, graph_more(node, x, y), class: style, id: graph_id(node))
        end

        def graph_kind(node)
          case node[:type]
          when "root", "imemo" then node[:type]
          when "class", "module", "iclass" then "class"
          else "object"
          end
        end

        # References that are not drawn: referrers at the left, outgoing references at the right.
        def graph_more(node, x, y)
          return unless node[:address]

          sides = { more_referrers: [x, "end"], more_references: [x + Layers::WIDTH, "start"] }
          sides.filter_map do |side, (edge, anchor)|
            more = node[side]
            next if more.zero?

            graph_handle(node, more, side == :more_referrers ? "incoming" : "outgoing",
              [edge, y + Layers::HEIGHT, anchor])
          end
        end

        def graph_handle(node, more, words, (x, y, anchor))
          target = node[:expanded] ? object_url(node[:address]) : expand_url(node)
          action = node[:expanded] ? "see the object's page" : "show the largest"
          parts = [
            Html.tag(:title, "#{count(more)} more #{words} references: #{action}"),
            Html.tag(:text, "+#{count(more)}", x: x, y: y + 9, text_anchor: anchor == "end" ? "start" : "end")
          ]
          Html.tag(:a, parts, href: target, class: node[:expanded] ? "more all" : "more")
        end

        # Keys of one table often differ only at their end: the `last` characters are preserved.
        def cut(text, longest, last = 0)
          return text if text.length <= longest

          "#{text[0, longest - 1 - last]}\u2026#{text[text.length - last, last]}"
        end
      end
    end
  end
end
