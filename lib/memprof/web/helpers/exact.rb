# frozen_string_literal: true

require_relative "../../cell"

module Memprof
  class Web
    module Helpers
      # Cells of tables as values for exports: while {#exactly} runs, helpers return numbers and whole texts
      # instead of words and links. Included after the helpers that it changes.
      module Exact
        def exactly
          @exact = true
          yield
        ensure
          @exact = false
        end

        # The value of a cell: a number, a text, or nil.
        def value(content)
          parts = [content].flatten.map { |part| part.is_a?(Html) ? Html.text(part) : part }
          parts = parts.reject { |part| part.nil? || part == "" }
          parts.size < 2 ? parts.first : parts.map { |part| part.to_s.strip }.join(" ")
        end

        def present(value, kind) = @exact ? Cell.exact(value, kind) : super

        def cell(value, kind) = @exact ? value : super

        def bytes(number) = @exact ? number : super

        def count(number) = @exact ? number : super

        def percent(number) = @exact ? number : super

        def duration(seconds) = @exact ? seconds : super

        def cost(kind, number) = @exact ? number : super

        def bar(number) = @exact ? nil : super

        def growth_bar(number, most) = @exact ? nil : super

        def fill_bars(counts) = @exact ? counts.join(" ") : super

        def short(text, *) = @exact ? text : super

        def list(things, &block) = @exact ? things.map { |thing| value(block.call(thing)) }.join("; ") : super

        def site(site) = @exact ? Cell.exact(site, :place) : super

        def link(text, target, **) = @exact ? text : super

        # What is hidden from those who listen, and what one presses, is not data.
        def tag(name, *content, **attributes)
          return super unless @exact

          value(content) unless %i[form input button].include?(name) || attributes[:aria_hidden]
        end
      end
    end
  end
end
