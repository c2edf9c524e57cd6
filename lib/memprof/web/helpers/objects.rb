# frozen_string_literal: true

require "json"
require_relative "../../cli/cell"
require_relative "../../cli/phrase"
require_relative "../filter"
require_relative "../html"

module Memprof
  class Web
    module Helpers
      # Objects, classes and places of answers, each with its link.
      module Objects
        LONGEST = 120 # characters of a text in a table
        private_constant :LONGEST

        # @param object [Hash] of an answer
        # @return [Html] what it is; of a root, with a link to what it holds
        def object(object)
          address = object[:address]
          target = address ? object_url(address) : objects_url(Filter.root(object[:class]))
          link(short(object[:text] || address), target, class: "object")
        end

        # @param site [Hash, nil] of an answer
        # @return [Html] where objects were made, with a link to all that were made there
        def site(site)
          return Html.new if site.nil? || site[:file].to_s.empty?

          link(CLI::Cell.place(site), objects_url(Filter.site(site)), class: "place",
            title: CLI::Cell.place(site, full: true))
        end

        # @param name [String, nil] of a class
        # @return [Html]
        def class_link(name)
          name.to_s.empty? ? Html.new : link(short(name), class_url(name), class: "object")
        end

        # @param holder [Hash, nil] of an answer: a class and a label
        # @return [String]
        def holder(holder)
          return "" unless holder

          label = holder[:label].to_s
          label.match?(/\A[@\[]/) || label.empty? ? "#{holder[:class]}#{label}" : "#{holder[:class]} #{label}"
        end

        # @param text [String]
        # @return [String, Html] with its middle left out if it is long; the pointer tells all of it
        def short(text, longest = LONGEST)
          return text if text.length <= longest

          half = (longest - 3) / 2
          Html.tag(:span, "#{text[0, half]}...#{text[-half, half]}", title: text[0, 2000])
        end

        # A list in a cell.
        #
        # @param things [Array]
        # @yieldparam thing [Object]
        # @return [Html]
        def list(things)
          Html.join(things.map { |thing| Html.tag(:div, yield(thing)) })
        end

        # @param row [Hash] with `:file`, `:line`, `:method`
        # @return [String]
        def place(row) = CLI::Cell.place(row)

        # @param row [Hash] of the answer to `duplicates`
        # @return [Html] how many strings there are, with a link to them if their whole text is known
        def equal_strings(row)
          whole = row[:text] && row[:text].bytesize == row[:length]
          link(count(row[:count]), whole ? objects_url("value = #{Filter.quoted(row[:text])}") : nil)
        end

        # @param number [Integer, nil]
        # @return [Html, nil] with a link to all that was made in the same generation
        def generation(number)
          number && link(count(number), objects_url("generation = #{number}"))
        end

        # @param value [Object] of a fact that the dump has
        # @return [Html] addresses as links
        def fact(value)
          return link(value, object_url(value)) if value.is_a?(String) && value.match?(/\A0x\h+\z/)

          text = value.is_a?(String) ? value : JSON.generate(value, max_nesting: 0)
          Html.escape(text.length > 2000 ? "#{text[0, 2000]}..." : text)
        end

        # @param lines [Array<Hash>] of {Source}
        # @param marked [Integer] number of the one that is meant
        # @return [Html]
        def source_lines(lines, marked)
          rows = lines.map do |row|
            Html.tag(row[:line] == marked ? :mark : :span, row[:line].to_s.rjust(5), "  ", row[:text])
          end
          Html.tag(:pre, rows, class: "source")
        end

        # @param parts [Array<String, Hash>] words of an answer, places in files apart
        # @return [String] with short paths
        def phrase(parts)
          CLI::Phrase.text(parts)
        end
      end
    end
  end
end
