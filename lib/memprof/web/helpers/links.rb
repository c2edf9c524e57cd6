# frozen_string_literal: true

require "erb"
require "uri"
require_relative "../html"

module Memprof
  class Web
    # What templates are written with.
    #
    # @api private
    module Helpers
      # Addresses of pages. Those of the application begin with where it is mounted.
      module Links
        # @param path [String] as "/heaps/1/groups"
        # @param query [Hash] what is nil is left out
        # @return [String]
        def url(path, **query)
          query = query.compact
          path = request.script_name + path
          query.empty? ? path : "#{path}?#{URI.encode_www_form(query)}"
        end

        # @param path [String] of a page of the same heap, as "/groups"
        # @param query [Hash]
        # @return [String]
        def here(path = "/", **query)
          url("/heaps/#{page.entry.id}#{path}", **query)
        end

        # @param changes [Hash] parameters, with others than the page has; nil takes one away
        # @return [String] the same page
        def same(**changes)
          query = page.params.transform_keys(&:to_sym).merge(changes)
          url(request.path, **query)
        end

        # @param text [Object]
        # @param target [String, nil] as {#url} and {#here} make it; without one there is no link
        # @param attributes [Hash]
        # @return [Html]
        def link(text, target, **attributes)
          target ? Html.tag(:a, text, href: target, **attributes) : Html.escape(text)
        end

        # @param other [Heaps::Entry]
        # @return [Html] the way to it, which tells whether it is open
        def heap_link(other)
          closed = !%i[open opening].include?(other.state)
          link(other.name, url("/heaps/#{other.id}/"),
            class: ("closed" if closed), aria_current: (other.id == page.entry&.id && "true"),
            title: [other.path, ("not open: it is opened when it is looked at" if closed)].compact.join("\n"))
        end

        # @param address [String]
        # @return [String]
        def object_url(address)
          here("/objects/#{ERB::Util.url_encode(address)}")
        end

        # @param name [String] of a class, or its address
        # @return [String]
        def class_url(name)
          here("/classes/#{ERB::Util.url_encode(name)}")
        end

        # @param where [String, nil] a filter
        # @param query [Hash] of the list
        # @return [String] the objects that it chooses
        def objects_url(where = nil, **query)
          here("/objects", where: where, **query)
        end

        # @param by [Symbol, String]
        # @param where [String, nil]
        # @param query [Hash] of the page
        # @return [String] the same objects in groups
        def groups_url(by, where = nil, **query)
          here("/groups", by: by, where: where, **query)
        end

        # @param name [String] of a file in web/assets
        # @return [String]
        def asset(name)
          url(Assets.path(name))
        end

        # @return [Html] what the page is in
        def breadcrumbs
          Html.join(page.breadcrumbs.map { |text, path| Html.tag(:li, link(text, url(path))) })
        end

        # @return [Array<Class>] pages of the menu: those of the heap if the page is about one
        def menu
          Page.in_menu.select do |other|
            other.there?(page.heaps) && (page.entry || !other.path.include?(":heap"))
          end
        end

        # @param other [Class] a page of the menu
        # @return [String, nil] whether this page is that one ("page"), or is found there ("true"), as
        #   `aria-current` has it
        def menu_mark(other)
          return "page" if page.is_a?(other)

          place = page.class.place.to_s
          "true" if place == other.path || place.start_with?("#{other.path}/")
        end

        # @param other [Class] a page
        # @return [String]
        def menu_url(other)
          url(other.path.sub(":heap") { page.entry.id.to_s })
        end
      end
    end
  end
end
