# frozen_string_literal: true

require_relative "../html"

module Memprof
  class Web
    module Helpers
      # Forms that lead to the same page with other parameters.
      module Forms
        # A field for a filter, and whatever else the page is asked by. With filter.js the page follows what
        # is typed, and says what its lead says then.
        def filter_form(*fields, where: true)
          kept = { "sort" => page.params["sort"] }.compact.map do |name, value|
            Html.tag(:input, type: "hidden", name: name, value: value)
          end
          Html.tag(:form, kept, fields, (filter_field if where), Html.tag(:button, "Show"), method: "get",
            action: url(request.path), class: "filter", data_as_typed: (".lead" if where))
        end

        def choice(label, name, words, chosen, none: nil)
          words = { "" => none }.merge(words) if none
          options = words.map do |word, text|
            Html.tag(:option, text, value: word, selected: word.to_s == chosen.to_s)
          end
          Html.tag(:label, label, " ", Html.tag(:select, options, name: name))
        end

        def filter_field
          field = Html.tag(:input, type: "text", name: "where", value: page.params["where"], size: 40,
            placeholder: "class = Session and retained > 1KiB", spellcheck: "false", autocomplete: "off")
          Html.tag(:label, "where ", field)
        end
      end
    end
  end
end
