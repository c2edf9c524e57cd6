# frozen_string_literal: true

require "erb"
require "uri"

module Memprof
  class Web
    module Helpers
      # URLs of pages, which begin with the application's mount point, and forms, which lead to the same page
      # with other parameters.
      module Links
        def url(path, **query)
          query = query.compact
          path = request.script_name + path
          query.empty? ? path : "#{path}?#{URI.encode_www_form(query)}"
        end

        def here(path = "/", entry: page.entry, **query) = url("/heaps/#{entry.id}#{path}", **query)

        def same(**changes)
          query = page.params.transform_keys(&:to_sym).merge(changes)
          url(request.path, **query)
        end

        def link(text, target, **attributes)
          target ? Html.tag(:a, text, href: target, **attributes) : Html.escape(text)
        end

        def tag(name, *content, **attributes) = Html.tag(name, *content, **attributes)

        def heap_link(other)
          closed = !%i[open opening].include?(other.state)
          link(other.name, url("/heaps/#{other.id}/"),
            class: ("closed" if closed), aria_current: (other.id == page.entry&.id && "true"),
            title: [other.path, ("closed; opens when viewed" if closed)].compact.join("\n"))
        end

        def object_url(address) = here("/objects/#{ERB::Util.url_encode(address)}")

        def class_url(name, **entry) = here("/classes/#{ERB::Util.url_encode(name)}", **entry)

        def objects_url(where = nil, **query) = here("/objects", where: where, **query)

        def groups_url(by, where = nil, **query) = here("/groups", by: by, where: where, **query)

        def asset(name) = url(Assets.path(name))

        def breadcrumbs
          Html.join(page.breadcrumbs.map { |text, path| Html.tag(:li, link(text, url(path))) })
        end

        # The pages of the heap, or else the ones of everything else.
        def menu(of_heap: !page.entry.nil?)
          Page.in_menu.select do |other|
            other.path.include?(":heap") == of_heap && other.there?(page.heaps, page.entry)
          end
        end

        # Beside a heap's own menu.
        def other_places = page.entry ? menu(of_heap: false) : []

        def menu_mark(other)
          return "page" if page.instance_of?(other)

          place = page.class.place.to_s
          "true" if place == other.path || place.start_with?("#{other.path}/")
        end

        def menu_url(other) = url(other.path.sub(":heap") { page.entry.id.to_s })

        # A form with a field for a filter and the page's other parameters. With filter.js, the page updates
        # as the user types, and announces its new lead.
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
