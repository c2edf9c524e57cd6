# frozen_string_literal: true

require_relative "../paths"
require_relative "../wording"
require_relative "filter"
require_relative "request"

module Memprof
  class Web
    # A page: a pure function of the heaps that are open, the parts of its path, and its parameters. {#data}
    # is what it shows, and what its JSON twin is; its view (`web/views/NAME.erb`) only lays that out.
    #
    # A new page is a file in `pages/` and a view. Its class says its path, and which of its methods do what
    # forms ask for:
    #
    #     class Slots < HeapPage
    #       at "/heaps/:heap/slots", title: "Slots", menu: "Slots", order: 70
    #       post "/heaps/:heap/slots/forget", :forget
    class Page
      class << self
        attr_reader :path, :title, :menu, :order, :place, :assets, :routes

        # `place` is where the page is in the menu, if not there itself; `assets` are scripts and style sheets
        # besides those that all pages have.
        def at(path, title: nil, menu: nil, order: 1000, place: path, assets: [])
          @path = path
          @title = title
          @menu = menu
          @order = order
          @place = place
          @assets = assets
          @routes = [["GET", path, nil]]
          Page.all << self
        end

        # The method is given the request, and gives the path to go on with.
        def post(path, action) = @routes << ["POST", path, action]

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

      def title = self.class.title

      def view = self.class.name.split("::").last.gsub(/(?<=[a-z])(?=[A-Z])/, "_").downcase

      def breadcrumbs = []

      def assets = self.class.assets.to_a

      # Of a list that is cut into pages.
      def number = integer(:page, 1)

      def redirect = nil

      def download = nil

      private

      # A part of the path that is a whole number; nil if it is none.
      def captured_number(name) = Integer(captures.fetch(name), 10, exception: false)

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

      # A parameter that is a number; `words` say which.
      def decimal(name, range, words)
        value = text(name) or return
        number = Float(value, exception: false)
        return number if number && range.cover?(number)

        raise BadRequest, "invalid #{name} #{value.inspect}; expected #{words}"
      end

      # The parameters `from` and `to`: a part of the time, in seconds after a moment.
      def part_of_time(moment)
        from, to = %i[from to].map { |name| decimal(name, 0..Float::MAX, "seconds after #{moment}") }
        raise BadRequest, "to must be at least from" if to && to < from.to_f

        { from: from || 0.0, to: to } if from || to
      end

      # The rows of this page of a list.
      def rows_of_page(rows, each) = existing(rows.drop((number - 1) * each).first(each), number)

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
require_relative "live_page"
require_relative "record_page"
