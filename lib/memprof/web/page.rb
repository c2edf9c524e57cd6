# frozen_string_literal: true

require_relative "../cli/suggestion"
require_relative "../paths"
require_relative "../wording"
require_relative "filter"
require_relative "request"

module Memprof
  class Web
    # A page: a pure function of the open heaps, its path captures, and its parameters. {#data} is its
    # content, and its JSON twin; its view (`web/views/NAME.erb`) only lays that out.
    #
    # A new page is a file in `pages/` and a view. Its class declares its path, and which methods handle its
    # forms:
    #
    #     class Slots < HeapPage
    #       at "/heaps/:heap/slots", title: "Slots", menu: "Slots", order: 70
    #       post "/heaps/:heap/slots/forget", :forget
    class Page
      MOST_ROWS = 10_000
      private_constant :MOST_ROWS

      class << self
        attr_reader :path, :title, :menu, :order, :place, :assets, :routes

        # `place` is the page's place in the menu, if it is not an entry itself; `assets` are additional
        # scripts and style sheets.
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

        # The method gets the request, and returns the path to redirect to.
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

      # The data of the page: byte counts are exact, unknown values are nil.
      def data = raise(NotImplementedError, "#{self.class}#data")

      def title = self.class.title

      def view = self.class.name.split("::").last.gsub(/(?<=[a-z])(?=[A-Z])/, "_").downcase

      def breadcrumbs = []

      def assets = self.class.assets.to_a

      # The same question on the command line, or nil.
      def command = nil

      # A place in a list that a parameter chooses; the first by default.
      def position(name) = integer(name, 1)

      # Rows of a page of a list; exports of whole lists ask for more.
      def rows_each(default) = integer(:each, default, max: MOST_ROWS)

      # The page number of a paginated list.
      def number = integer(:page, 1)

      def redirect = nil

      def download = nil

      private

      # A command line about files, as a shell reads it; options that are nil are omitted.
      def command_line(verb, *files, arguments: [], **options)
        given = options.compact.flat_map do |name, value|
          option = "--#{name.to_s.tr("_", "-")}"
          value == true ? [option] : [option, value.to_s]
        end
        files = files.map { |file| file.start_with?("-") ? "./#{file}" : file }
        ["memprof", verb, *given, *files, *arguments].map { |word| CLI::Suggestion.word(word) }.join(" ")
      end

      # A command line about several heaps; nil if one of them has blocks of malloc and another has not.
      def command_of_heaps(verb, heaps, **options)
        with_blocks = heaps.map(&:blocks?).uniq
        return if heaps.size < 2 || with_blocks.size > 1

        command_line(verb, *heaps.map(&:file), **options, blocks: with_blocks.first || nil)
      end

      # A part of the path that is a whole number; nil if invalid.
      def captured_number(name) = Integer(captures.fetch(name), 10, exception: false)

      # A text parameter; nil if missing or empty.
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

      # A numeric parameter; `words` describe the valid ones.
      def decimal(name, range, words)
        value = text(name) or return
        number = Float(value, exception: false)
        return number if number && range.cover?(number)

        raise BadRequest, "invalid #{name} #{value.inspect}; expected #{words}"
      end

      # The parameters `from` and `to`: a time range, in seconds after a moment.
      def part_of_time(moment)
        from, to = %i[from to].map { |name| decimal(name, 0..Float::MAX, "seconds after #{moment}") }
        raise BadRequest, "to must be at least from" if to && to < from.to_f

        { from: from || 0.0, to: to } if from || to
      end

      # This page's rows of a list.
      def rows_of_page(rows, each)
        each = rows_each(each)
        existing(rows.drop((number - 1) * each).first(each), number)
      end

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
