# frozen_string_literal: true

require_relative "../../paths"
require_relative "../recording_page"

module Memprof
  class Web
    module Pages
      # `/malloc/1/flame`: the stacks that allocated, as a flame graph.
      class RecordingFlame < RecordingPage
        at "/malloc/:id/flame", title: "malloc by call stack", assets: %w[flame.js flame.css]

        def breadcrumbs = [*super, [record.name, within]]

        def data
          flame = content.flame(value.to_sym, **chosen)
          { values: VALUES, **content.summary.slice(:callers, :sample), range: range, **flame,
            names: flame[:names].map { |name| short(name) } }
        end

        private

        # From the gem on: nothing else of a path fits into a frame.
        def short(name)
          name.end_with?(")", "]") ? Records::Tracked.short(name) : Paths.short(name)
        end
      end
    end
  end
end
