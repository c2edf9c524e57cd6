# frozen_string_literal: true

require_relative "../treemap"

module Memprof
  class Web
    module Helpers
      # A picture of the writable memory in a core file.
      module Blocks
        # Colors of the parts of memory.
        PARTS = {
          "leaked" => "h0", "owned" => "h1", "garbage" => "h3", "native" => "h4", "free" => "h2"
        }.freeze
        # The parts that a filter chooses.
        CHOSEN = {
          "leaked" => "leaked", "garbage" => "type = BLOCK and not reachable and not leaked",
          "free" => "state in (free, cached)"
        }.freeze
        MEMORY = [1200, 260].freeze # size of the picture, which is as wide as others
        private_constant :PARTS, :CHOSEN, :MEMORY

        def memory_map(parts)
          boxes = Treemap.layout(parts.map { |part| [part[:bytes], part] }, 0, 0, *MEMORY).map do |box, part|
            style = PARTS.fetch(part[:set].to_s, "rest")
            box_of(box, "#{part[:what]}: #{Units.bytes(part[:bytes])}", style, part_url(part))
          end
          picture(boxes, MEMORY.last, "treemap memory", "Writable memory")
        end

        # The objects of a part; nil if they are no objects.
        def part_url(part)
          where = CHOSEN[part[:set].to_s]
          where && objects_url(where)
        end
      end
    end
  end
end
