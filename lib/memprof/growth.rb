# frozen_string_literal: true

require_relative "loading"
require_relative "output"
require_relative "paint"
require_relative "growth/site"
require_relative "growth/watch"

module Memprof
  # Objects that grow when the same block runs again and again: a leak, as opposed to a cache that has filled.
  # Created by {Memprof.growth}. An Enumerable of the {Site sites} that grow, fastest first.
  #
  # @example
  #   cache = []
  #   growth = Memprof.growth(times: 10) { cache << "entry".dup }
  #   puts growth if growth.grows?
  class Growth
    include Enumerable

    autoload :GrowthText, "#{__dir__}/growth/growth_text"
    autoload :Holders, "#{__dir__}/growth/holders"

    # Formats that {#write} accepts.
    FORMATS = %i[text json markdown].freeze
    # Fewer counts than this can't distinguish growth from chance.
    LEAST_RUNS = 4
    # Maximum number of runs while something grows, as a multiple of the requested runs.
    MOST = 12
    private_constant :LEAST_RUNS, :MOST

    # @return [Array<Site>] sites that grow, fastest first
    attr_reader :sites
    # @return [Integer] number of counted runs of the block
    attr_reader :runs
    # @return [Integer] number of runs before those
    attr_reader :warmup

    # Runs the block `warmup` times, then `times` times with a full GC and a count after each, and finds the
    # sites and classes whose objects or contents grow. Objects of the warmup runs (caches, autoloads) don't
    # count. While something grows, the block runs on.
    #
    # @param times [Integer] counted runs, at least 4
    # @param warmup [Integer] runs before those
    # @param max_times [Integer, nil] maximum number of counted runs; twelve times as many if nil
    # @param settle [Proc, nil] runs up to twelve times as often while it is unclear whether something grows;
    #   called with a class name, and a number if the class is anonymous, to decide whether it matters
    # @yield the work that should not leak
    # @raise [ArgumentError] if an option is out of range, or without a block
    # @api private
    def self.measure(times: 20, warmup: 3, max_times: nil, settle: nil, &block)
      raise ArgumentError, "block required" unless block
      unless times.is_a?(Integer) && times >= LEAST_RUNS
        raise ArgumentError, "times must be an Integer of at least #{LEAST_RUNS}, not #{times.inspect}"
      end
      unless warmup.is_a?(Integer) && !warmup.negative?
        raise ArgumentError, "warmup must be an Integer of at least 0, not #{warmup.inspect}"
      end
      most = max_times || times * MOST
      unless most.is_a?(Integer) && most >= times
        raise ArgumentError,
          "max_times must be an Integer of at least times (#{times}), not #{max_times.inspect}"
      end

      warmup.times { yield }
      sites, runs = record(times, most, settle, block)
      new(sites, runs: runs, warmup: warmup)
    end

    class << self
      private

      def record(times, most, settle, block)
        watch = Watch.new(block, settle)
        if settle
          watch.run(times)
          watch.run_while_growing(times)
        else
          watch.measure(times, most)
        end
        Native.quiet { [retained(grown(watch)), watch.runs] }
      ensure
        watch&.close
      end

      # Adds what retains the objects of the sites, which only the current heap knows.
      def retained(sites)
        return sites if sites.empty?

        holders = Holders.of(sites.max_by(Holders::MOST, &:slope))
        sites.map { |site| site.with_holder(holders[site]) }
      end

      # Mean memsize of an object, by site and class.
      def sizes(profile)
        retained = Hash.new { |hash, key| hash[key] = [0, 0] }
        profile.sites("memory", nil).each do |row|
          sum = retained[row.values_at("file", "line", "class")]
          sum[0] += row["retained"]["objects"]
          sum[1] += row["retained"]["bytes"]
        end
        retained.select { |_, (objects, _)| objects.positive? }
          .transform_values { |objects, bytes| bytes.fdiv(objects) }
      end

      def grown(watch)
        sites = grown_objects(watch) + grown_contents(watch)
        return sites if sites.any? || !watch.incomplete?

        raise Error, "it is unknown whether anything grows: a Ractor ran, and Ruby #{RUBY_VERSION} " \
                     "reported no allocations for a while"
      end

      def grown_objects(watch)
        series = watch.series
        sizes = sizes(watch.profile)
        series.zip(Native.fit(series.values)).filter_map do |(place, counts), (slope, low, grows)|
          size = sizes[place]
          site(place, slope: slope, low: low, counts: counts, bytes: size && size * slope) if grows
        end
      end

      def grown_contents(watch)
        series = watch.contents
        series.each_key.zip(Native.fit(series.values)).filter_map do |place, (slope, _, grows)|
          next unless grows

          site(place, slope: 0.0, low: 0.0, counts: watch.counts(place), bytes: slope,
            contents: watch.bytes(place), address: watch.address(place))
        end
      end

      def site((file, line, class_name), **facts)
        line = 0 if file.equal?(Watch::BEFORE)
        Site.new(file: file, line: line, class_name: class_name, **facts)
      end
    end

    # @api private
    def initialize(sites, runs:, warmup:)
      @sites = sites.sort_by { |site| [-site.slope, site.file, site.line, site.class_name] }.freeze
      @runs = runs
      @warmup = warmup
    end

    # Calls the block with each site that grows, fastest first.
    #
    # @yieldparam site [Site]
    # @return [self, Enumerator] an Enumerator without a block
    # @example
    #   cache = []
    #   Memprof.growth { cache << Object.new }.each { |site| puts site.location }
    def each(&block)
      return enum_for(:each) { sites.size } unless block

      sites.each(&block)
      self
    end

    # True if anything grows.
    #
    # @return [Boolean]
    # @example
    #   Memprof.growth { Object.new }.grows? # => false
    def grows? = !empty?

    # True if nothing grows.
    #
    # @return [Boolean]
    # @example
    #   Memprof.growth { Object.new }.empty? # => true
    def empty? = sites.empty?

    # Everything as plain values.
    #
    # @return [Hash{Symbol => Object}]
    # @example
    #   Memprof.growth { Object.new }.to_h[:sites] # => []
    def to_h = { format: "memprof-growth", version: 1, runs: runs, warmup: warmup, sites: sites.map(&:to_h) }

    # Everything as JSON; valid UTF-8 whatever the names contain.
    #
    # @return [String]
    # @example
    #   puts Memprof.growth { Object.new }.to_json
    def to_json(*state)
      Loading.json
      to_h.to_json(*state)
    end

    # The growing sites as a table, or a sentence that nothing grows.
    #
    # @param color [Boolean] with colours for a terminal
    # @param unicode [Boolean] draw the counts with block characters
    # @return [String]
    # @example
    #   puts Memprof.growth { Object.new } # prints "Nothing grows over 20 runs."
    def to_s(color: false, unicode: Encoding.default_external == Encoding::UTF_8)
      GrowthText.new(self, unicode: unicode).to_s(color: color)
    end

    # The growing sites as a Markdown table, for an issue or a pull request.
    #
    # @return [String]
    # @example
    #   puts Memprof.growth { Object.new }.to_markdown
    def to_markdown = GrowthText.new(self, unicode: true).to_markdown

    # Writes the result. A file is written atomically, and only its owner can read it.
    #
    # @param path_or_io [String, Pathname, IO] the file, or an open IO
    # @param format [Symbol, String] one of {FORMATS}
    # @param color [Boolean, Symbol] for text: `:auto` colours if an IO is a terminal and NO_COLOR is not set
    # @return [nil]
    # @raise [ArgumentError] if the format is invalid; lists the valid ones
    # @raise [Memprof::Error] if it can't be written
    # @example
    #   Memprof.growth { Object.new }.write("growth.json", format: :json)
    def write(path_or_io = $stdout, format: :text, color: :auto)
      content =
        case Output.check_format(format, FORMATS)
        when :text then to_s(color: Paint.wanted?(path_or_io, color))
        when :json then "#{to_json}\n"
        else to_markdown
        end
      Output.write(path_or_io, content)
    end

    # @return [String] for the console
    # @example
    #   p Memprof.growth { Object.new }
    def inspect = "#<#{self.class} #{sites.size} growing over #{runs} runs>"
  end
end
