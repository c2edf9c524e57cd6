# frozen_string_literal: true

module Memprof
  module CLI
    # Which objects grow from dump to dump of a process: old ones that retain new objects or are larger
    # themselves, and retain more than before. A cache that evicts as much as it adds retains new objects,
    # too.
    class HeapGrowth
      LEAST = 100 # of the new bytes, one in so many has to be a holder's growth
      private_constant :LEAST

      def initialize(totals, owners)
        @series = {}.compare_by_identity
        # In the dump of another process everything is new.
        owners = [] if totals[:kept][:count].zero?
        owners.each { |owner| @series[owner] = [] if grown?(owner, totals[:new][:size]) }
      end

      # Notes what they retain in one more dump, the oldest first.
      def note(heap) = @series.each { |owner, sizes| sizes << retained(heap, owner) }

      def owners
        growing = @series.select { |_, sizes| growing?(sizes.compact) }
        growing.map { |owner, sizes| owner.merge(series: sizes) }
      end

      private

      def grown?(owner, new)
        growth = owner[:growth]
        growth.positive? && growth * LEAST >= new && growth * 10 >= owner[:retained_by_new] &&
          survived?(owner)
      end

      # What takes the place of others does not.
      def survived?(owner)
        survived = owner[:survived]
        survived.nil? || survived[:size] * 2 >= owner[:new][:size]
      end

      # It may shrink once in a while: garbage goes when it goes.
      def growing?(sizes)
        return true if sizes.size < 2

        steps = sizes.each_cons(2).map { |before, after| after <=> before }
        rarely_shrinks = steps.count(-1) * 3 <= steps.size
        mostly_grows = steps.size < 3 || steps.count(1) * 2 > steps.size
        sizes.last > sizes.first && rarely_shrinks && mostly_grows
      end

      def retained(heap, owner)
        return if owner[:address].nil?

        object = heap.at(owner[:address])
        object.retained if object && object.class_name == owner[:class]
      end
    end
  end
end
