# frozen_string_literal: true

require_relative "../treemap"

module Memprof
  class Web
    module Helpers
      # A picture of the writable memory in a core file.
      module Blocks
        MEMORY = [1200, 260].freeze # size of the picture, which is as wide as others
        # Colors of the sets of blocks.
        PARTS = { leaked: "h0", reachable: "h1", garbage: "h3", free: "h2" }.freeze
        private_constant :MEMORY, :PARTS

        def memory_map(parts)
          boxes = Treemap.layout(parts.map { |part| [part[:bytes], part] }, 0, 0, *MEMORY).map do |box, part|
            style = PARTS.fetch(part[:set], "rest")
            box_of(box, "#{part[:what]}: #{Units.bytes(part[:bytes])}", style, part_url(part))
          end
          picture(boxes, MEMORY.last, "treemap memory", "Writable memory")
        end

        # The list of a part's blocks; nil for other memory.
        def part_url(part) = part[:where] && objects_url(part[:where])
      end
    end
  end
end
