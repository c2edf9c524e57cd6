# frozen_string_literal: true

require_relative "../record_page"

module Memprof
  class Web
    module Pages
      # `/tracked/1/flame`: the call stacks that made objects, as a flame graph. `own=yes` leaves out the
      # frames of gems and of Ruby.
      #
      # @api private
      class TrackedFlame < RecordPage
        at "/tracked/:id/flame"
        about :tracked

        # @return [String]
        def title = "Who allocates"

        # @return [Array<Array(String, String)>]
        def breadcrumbs = [*super, [record.name, within]]

        # @return [Array<String>]
        def scripts = ["flame.js"]

        # @return [Array<String>]
        def styles = [*super, "flame.css"]

        # @return [Hash{Symbol => Object}] `:values`, `:stacks`, `:own`; `:names` and `:frames`, as those of a
        #   heap
        def data
          flame = content.flame(value, own: own?)
          # From the gem on: nothing else of a path fits into a frame.
          flame[:names] = flame[:names].map { |name| Records::Tracked.short(name) }
          { values: content.values, stacks: content.stacks?, own: own?, **flame }
        end

        # @return [Boolean] whether only frames of one's own code are shown
        def own? = word(:own, %w[yes no], "no") == "yes"

        # @return [String] what the frames are as wide as
        def value = word(:value, content.values, content.values.first)
      end
    end
  end
end
