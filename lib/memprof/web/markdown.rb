# frozen_string_literal: true

require "strscan"
require_relative "../table"
require_relative "html"

module Memprof
  class Web
    # A rendered page as Markdown for an issue: headings, sentences, facts, lists and tables, without
    # pictures, forms and links. Words that Markdown would interpret are written as code.
    class Markdown
      # An element: its name, attributes and contents.
      Node = Struct.new(:name, :attributes, :inner) do
        def style?(word) = attributes[/ class="([^"]*)"/, 1].to_s.split.include?(word)
      end

      TAG = %r{<(?<end>/)?(?<name>[a-z][a-z0-9]*)(?<attributes>[^>]*)>}i
      EMPTY = %w[br hr img input link meta].freeze
      LEFT_OUT = %w[svg form nav button script style input progress output].freeze
      BLOCKS = %w[h1 h2 h3 p ul ol dl table pre figure figcaption section div details summary].freeze
      SPECIAL = %r{[*_`<>\[\]|#@!\\~&$^{}]|://|\Awww\.|:[a-z]\w*:}i
      private_constant :Node, :TAG, :EMPTY, :LEFT_OUT, :BLOCKS, :SPECIAL

      def self.of(html) = new(html).to_s

      def initialize(html)
        @root = Node.new("div", "", [])
        parse(StringScanner.new(String.new(html)))
      end

      def to_s = "#{blocks(@root).join("\n\n")}\n"

      private

      def parse(scanner)
        open = [@root]
        until scanner.eos?
          next element(scanner, open) if scanner.scan(TAG)

          open.last.inner << Html.text(Html.new(scanner.scan(/[^<]+|</)))
        end
      end

      def element(scanner, open)
        name = scanner[:name]
        return close(name, open) if scanner[:end]

        node = Node.new(name, scanner[:attributes], [])
        open.last.inner << node
        open << node unless EMPTY.include?(name)
      end

      def close(name, open)
        index = open.rindex { |node| node.name == name }
        open.slice!(index..) if index&.positive?
      end

      # The paragraphs of an element.
      def blocks(node)
        runs = node.inner.chunk_while { |one, other| !block?(one) && !block?(other) }
        runs.flat_map { |run| block?(run.first) ? block(run.first) : [inline(run)] }.reject(&:empty?)
      end

      def block?(node)
        node.is_a?(Node) && (BLOCKS.include?(node.name) || node.inner.any? { |one| block?(one) })
      end

      def block(node)
        return [] if hidden?(node)

        case node.name
        when "h1", "h2", "h3" then ["#{"#" * node.name[1].to_i} #{inline(node.inner)}"]
        when "ul", "ol" then [items(node).join("\n")]
        when "dl" then [facts(node).join("\n")]
        when "table" then [table(node)]
        when "pre" then [fenced(plain(node))]
        else blocks(node)
        end
      end

      def hidden?(node) = LEFT_OUT.include?(node.name) || node.attributes.match?(/ hidden\b/)

      def items(list)
        list.inner.grep(Node).reject { |item| hidden?(item) }.map.with_index(1) do |item, number|
          mark = list.name == "ol" ? "#{number}." : "-"
          first, *rest = blocks(item)
          ["#{mark} #{first}", *rest.map { |block| block.gsub(/^/, "  ") }].join("\n")
        end
      end

      def facts(list)
        list.inner.grep(Node).slice_when { |_, node| node.name == "dt" }.map do |name, *values|
          "- #{inline(name.inner)}: #{values.map { |value| inline(value.inner) }.join(" ")}"
        end
      end

      def fenced(text)
        fence = "`" * [text.scan(/`+/).map(&:size).max.to_i + 1, 3].max
        "#{fence}\n#{text.chomp}\n#{fence}"
      end

      # Columns of pictures and buttons are left out.
      def table(node)
        head, *rows = rows(node).map { |row| row.inner.grep(Node) }
        numbers = head.map { |cell| cell.style?("number") }
        head, *rows = [head, *rows].map { |row| row.map { |cell| text(cell) } }
        shown = head.each_index.select { |index| [head, *rows].any? { |row| !row[index].to_s.empty? } }
        table = Memprof::Table.new
        shown.each { |index| table.public_send(numbers[index] ? :number : :name, head[index]) }
        rows.each { |row| table.row(*shown.map { |index| row[index].to_s }) }
        table.to_markdown.chomp
      end

      def rows(node) = node.inner.grep(Node).flat_map { |inner| inner.name == "tr" ? [inner] : rows(inner) }

      # The words of inline elements.
      def inline(nodes)
        pieces = nodes.map { |node| piece(node) }.join.gsub("\u0000\u0000", "\u0000 \u0000")
        pieces.split(/(\u0000[^\u0000]*\u0000)/).map { |part| words(part) }.join
          .gsub(/`\s+`/, " ").gsub(/[ \n]+/, " ").strip
      end

      # Names are code as a whole, marked until words are joined.
      def piece(node)
        return node.tr("\u0000", "") unless node.is_a?(Node)
        return " " if hidden?(node) || node.name == "br"

        text = node.inner.map { |inner| piece(inner) }.join
        name = node.name == "code" || %w[object place label].any? { |word| node.style?(word) }
        name && !text.include?("\u0000") ? text.sub(/\S.*\S|\S/m, "\u0000\\0\u0000") : text
      end

      def words(text)
        return Memprof::Table.code(text.delete("\u0000")) if text.start_with?("\u0000")

        text.gsub(/\S+/) { |word| SPECIAL.match?(word) ? Memprof::Table.code(word) : word }
      end

      def text(node) = plain(node).gsub(/[ \n\u00a0]+/, " ").strip

      def plain(node)
        return node unless node.is_a?(Node)
        return "" if hidden?(node)

        line = node.name == "div" || node.style?("source") ? "\n" : ""
        node.inner.map { |inner| "#{plain(inner)}#{line}" }.join
      end
    end
  end
end
