# frozen_string_literal: true

module Memprof
  module Testing
    # Runs a block many times and finds the sites whose live objects grow, as judged by Memprof.growth. When
    # in doubt it continues, up to twelve times as often, and compares with all objects of the class.
    class Leaks
      attr_accessor :times, :warmup, :internals
      attr_reader :classes

      def initialize(times: 20, warmup: 3, classes: [])
        @times = times
        @warmup = Testing.check_warmup(warmup)
        @internals = false
        self.classes = classes
      end

      def classes=(classes)
        @filter = ClassFilter.new(classes)
        @classes = classes
      end

      def found?(block)
        growth = Growth.measure(times: times, warmup: warmup, settle: method(:counts?).to_proc, &block)
        @runs = growth.runs
        @sites = growth.sites
        @sites.any?
      end

      def description
        of = " of #{classes.map { |key| ClassFilter.name_of(key) }.join(" or ")}" if classes.any?
        "leak objects#{of} over #{times} runs"
      end

      def message
        grown = @sites.size == 1 ? "1 site" : "#{@sites.size} sites"
        grown += " still grew after #{@runs} runs"
        "expected block not to #{description}, but #{grown}\n#{SiteTable.of_growth(@sites)}".chomp
      end

      private

      def counts?(class_name, number = nil)
        return @filter.key_for(class_name, number) if classes.any?

        internals || !class_name.start_with?("<")
      end
    end
  end
end
