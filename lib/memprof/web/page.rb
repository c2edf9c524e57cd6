# frozen_string_literal: true

require_relative "filter"
require_relative "request"

module Memprof
  class Web
    # A page: a pure function of the heaps that are open, the parts of its path, and its parameters. {#data}
    # is what it shows, and what its JSON twin is; its view (`web/views/NAME.erb`) only lays that out.
    #
    # A new page is a file in `pages/` and a view. Its class says its path:
    #
    #     class Slots < HeapPage
    #       at "/heaps/:heap/slots", menu: "Slots", order: 70
    #
    # @abstract
    # @api private
    class Page
      class << self
        # @return [String] its path, as the {Router} reads it
        attr_reader :path
        # @return [String] GET, or POST of what changes something ({#act})
        attr_reader :verb
        # @return [String, nil] its name in the menu
        attr_reader :menu
        # @return [Integer] its place in the menu
        attr_reader :order

        # @return [String, nil] the path by which the menu marks where it is
        attr_reader :place

        # @param path [String]
        # @param verb [String]
        # @param menu [String, nil]
        # @param order [Integer]
        # @param place [String] a path below which it belongs, if that is not its own
        # @return [void]
        def at(path, verb: "GET", menu: nil, order: 1000, place: path)
          @path = path
          @place = place
          @verb = verb
          @menu = menu
          @order = order
          Page.all << self
        end

        # @return [Array<Class>] the pages that have a path
        def all
          @all ||= []
        end

        # @param _heaps [Heaps]
        # @return [Boolean] whether the menu has it
        def there?(_heaps) = true

        # @return [Array<Class>] those of the menu, in its order
        def in_menu
          all.select(&:menu).sort_by(&:order)
        end
      end

      # @return [Heaps]
      attr_reader :heaps
      # @return [Hash{Symbol => String}] the named parts of the path
      attr_reader :captures
      # @return [Hash{String => String}]
      attr_reader :params

      # @param heaps [Heaps]
      # @param captures [Hash{Symbol => String}]
      # @param params [Hash{String => String}]
      def initialize(heaps, captures = {}, params = {})
        @heaps = heaps
        @captures = captures
        @params = params
      end

      # @return [Heaps::Entry, nil] the heap that the page is about
      def entry = nil

      # @return [Array<Heaps::Entry>] the heaps that stay open while it is made
      # @raise [NotFound] if one is not there
      def subjects = [entry].compact

      # What the page tells: numbers of bytes are exact, unknown is nil.
      #
      # @return [Hash{Symbol => Object}]
      # @raise [BadRequest, NotFound, Opening]
      def data = raise(NotImplementedError, "#{self.class}#data")

      # @return [String] for the window, in the words of people
      def title = raise(NotImplementedError, "#{self.class}#title")

      # @return [String] name of the file in web/views
      def view
        self.class.name.split("::").last.gsub(/(?<=[a-z])(?=[A-Z])/, "_").downcase
      end

      # @return [Array<Array(String, String)>] what the page is in: titles with their paths, the outermost
      #   first
      def breadcrumbs = []

      # @return [Array<String>] scripts in web/assets that only this page needs
      def scripts = []

      # @return [Array<String>] styles in web/assets that only this page needs
      def styles = []

      # @return [String, nil] path and query of another page to go to in place of this one
      def redirect = nil

      # @return [Response, nil] a file to keep in place of a page
      def download = nil

      # Does what a POST asks for.
      #
      # @param _request [Request]
      # @return [String] path of the page to go to
      def act(_request) = raise(NotFound, "there is no such page")

      private

      # A parameter that is text; nil if it is not there or empty.
      def text(name)
        value = params[name.to_s]
        value unless value.nil? || value.strip.empty?
      end

      # A parameter that is a whole number of at least `least`.
      def whole(name, default, least: 1, most: 1_000_000_000)
        value = text(name) or return default
        number = Integer(value, 10, exception: false)
        return number if number&.between?(least, most)

        raise BadRequest, "#{name} must be a whole number of at least #{least}, not #{value.inspect}"
      end

      # Rows of one page of a list.
      #
      # @raise [NotFound] if the list ends before that page
      def existing(rows, number)
        return rows if number == 1 || !rows.empty?

        raise NotFound, "there is no page #{number}: the list ends before it"
      end

      # A parameter that is one of a few words.
      def word(name, words, default)
        value = text(name) or return default
        words.find { |known| known.to_s == value } ||
          raise(BadRequest, "#{name} must be one of #{words.join(", ")}, not #{value.inspect}")
      end
    end
  end
end

require_relative "heap_page"
