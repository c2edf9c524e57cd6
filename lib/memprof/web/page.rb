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
    class Page
      class << self
        attr_reader :path, :verb, :menu, :order, :place

        def at(path, verb: "GET", menu: nil, order: 1000, place: path)
          @path = path
          @place = place
          @verb = verb
          @menu = menu
          @order = order
          Page.all << self
        end

        def all
          @all ||= []
        end

        def there?(_heaps, _entry) = true

        def in_menu = all.select(&:menu).sort_by(&:order)
      end

      attr_reader :heaps, :captures, :params

      def initialize(heaps, captures = {}, params = {})
        @heaps = heaps
        @captures = captures
        @params = params
      end

      def entry = nil

      def subjects = [entry].compact

      # The data of the page: numbers of bytes are exact, unknown is nil.
      def data = raise(NotImplementedError, "#{self.class}#data")

      def title = raise(NotImplementedError, "#{self.class}#title")

      def view = self.class.name.split("::").last.gsub(/(?<=[a-z])(?=[A-Z])/, "_").downcase

      def breadcrumbs = []

      def scripts = []

      def styles = []

      def redirect = nil

      def download = nil

      # Does what a POST asks for.
      def act(_request) = raise(NotFound, "no such page")

      private

      # A parameter that is text; nil if it is not there or empty.
      def text(name)
        value = params[name.to_s]
        value unless value.nil? || value.strip.empty?
      end

      # A parameter that is a whole number.
      def integer(name, default, min: 1, max: 1_000_000_000)
        value = text(name) or return default
        number = Integer(value, 10, exception: false)
        return number if number&.between?(min, max)

        raise BadRequest, "invalid #{name} #{value.inspect}; expected a number from #{min} to #{max}"
      end

      # Rows of one page of a list.
      def existing(rows, number)
        return rows if number == 1 || !rows.empty?

        raise NotFound, "no page #{number}: the list is shorter"
      end

      # A parameter that is one of a few words.
      def choice(name, words, default)
        value = text(name) or return default
        words.find { |known| known.to_s == value } ||
          raise(BadRequest, "invalid #{name} #{value.inspect}; expected one of: #{words.join(", ")}")
      end
    end
  end
end

require_relative "heap_page"
require_relative "core_page"
