# frozen_string_literal: true

require_relative "../treemap"

module Memprof
  class Web
    module Helpers
      # Malloc blocks, and pictures of memory.
      module Blocks
        # Colors of the parts of memory.
        PARTS = {
          "leaked" => "h0", "owned" => "h1", "garbage" => "h3", "native" => "h4", "free" => "h2"
        }.freeze
        STATES = {
          "anchored" => "anchored", "garbage" => "garbage: the next GC frees it",
          "leaked" => "leaked: neither C code nor Ruby can free it",
          "unreferenced" => "leaked: nothing references it", "free" => "free", "used" => "used",
          "thread_cached" => "free, in the cache of a thread"
        }.freeze
        ANCHORS = {
          "static" => "Variable at", "stack" => "Stack at", "register" => "Register",
          "external" => "Other mapping at"
        }.freeze
        MEMORY = [1200, 260].freeze # size of the picture, which is as wide as others
        private_constant :PARTS, :STATES, :ANCHORS, :MEMORY

        def blocks_url(set, **query) = here("/blocks/list", set: set, **query)

        def block_url(address) = here("/blocks/at/#{address}")

        # The writable memory as boxes; Ruby's part has a box for each type.
        def memory_map(parts, types)
          whole = parts.map { |part| [part[:bytes], part] }
          boxes = Treemap.layout(whole, 0, 0, *MEMORY).map do |box, part|
            inner = types_in(box, types, part[:bytes]) if part[:set].to_s == "owned"
            [memory_box(box, part), *inner]
          end
          picture(boxes, MEMORY.last, "treemap memory", "Writable memory")
        end

        def state_of(block) = STATES.fetch(block[:state])

        # A link to the blocks of a group.
        def group_of_blocks(set, row)
          size = row[:size]
          name = size ? "blocks of #{Units.bytes(size)}" : row[:place] || row[:signature]
          link(short(name, 80), blocks_url(set, like: row[:signature], min: size, max: size), class: "object")
        end

        # A block or an object that is one step of a chain of references.
        def memory_step(step)
          return object_step(step) if step[:object]

          text = step[:size] ? "block of #{Units.bytes(step[:size])}" : step[:address]
          link(text, step[:start] && block_url(step[:start]), class: "object")
        end

        # A step with the name by which the object before it references it, if known.
        def chain_step(step)
          return memory_step(step) unless step[:label]

          Html.join([tag(:span, step[:label], class: "label"), memory_step(step)], " ")
        end

        def object_step(object)
          link(short(object[:text] || "#{object[:of_class] || object[:type]} at #{object[:object]}"),
            object[:text] && object_url(object[:object]), class: "object")
        end

        # The place outside of blocks and objects that a chain begins at.
        def anchor(anchor)
          from = anchor[:anchor] == "register" ? Integer(anchor[:from], 16) : anchor[:from]
          where = anchor[:file] || ("thread #{anchor[:thread]}" if anchor[:thread])
          Html.join([ANCHORS.fetch(anchor[:anchor]), from, where && "(#{where})"].compact, " ")
        end

        private

        def memory_box(box, part)
          style = PARTS.fetch(part[:set].to_s, "rest")
          title = "#{part[:what]}: #{Units.bytes(part[:bytes])}"
          box_of(box, title, style, part[:set] && blocks_url(part[:set]))
        end

        # Counts only owned blocks: the box excludes garbage.
        def types_in(box, types, whole)
          boxes_in(box, types, whole) { |row| row[:blocks][:bytes] }.map { |inner, row| type_box(inner, row) }
        end

        def type_box(box, row)
          title = "#{row[:type]}: #{Units.bytes(row[:blocks][:bytes])}"
          box_of(box, title, "h1", blocks_url(:used, like: "%Ruby#{row[:type].capitalize}"))
        end
      end
    end
  end
end
