# frozen_string_literal: true

require_relative "../../byte_size"
require_relative "../../core/words"
require_relative "../paging"

module Memprof
  class Web
    module Pages
      # Blocks of a set, the largest first.
      class BlockList < CorePage
        include Paging

        at "/heaps/:heap/blocks/list"

        # Sets, with their names.
        SETS = {
          used: "used", leaked: "leaked", unreferenced: "leaked, unreferenced by other leaks",
          owned: "of Ruby objects", garbage: "of Ruby's garbage", native: "of C code", anchored: "anchored",
          anchorpoints: "anchor points", stackanchored: "reachable from stacks",
          staticanchored: "reachable from variables", externalanchored: "reachable from other mappings",
          threadonlyanchored: "reachable from threads only",
          free: "free", threadcached: "free, in the cache of a thread", allocations: "all"
        }.freeze
        # Sets about one address.
        RELATED = { incoming: "that reference", outgoing: "referenced by" }.freeze
        # Bytes of a block that the list shows.
        HEAD = 32
        private_constant :HEAD

        def title
          of ? "Blocks #{RELATED.fetch(set)} #{of}" : "Blocks: #{SETS.fetch(set)}"
        end

        def data
          total = core(:count, set, **restrictions)
          blocks = core(:largest, set, **restrictions, **part)
          rows = blocks.map { |block| described(block) }
          {
            set: set, of: of, total: total, blocks: rows,
            paging: paging(rows, [total[:count] - part[:offset] - rows.size, 0].max)
          }
        end

        private

        def set = @set ||= choice(:set, of ? RELATED.keys : SETS.keys, of ? :incoming : :used)

        # The address that a set is about.
        def of
          address = text(:of) or return
          return address if address.match?(/\A0x\h{1,16}\z/)

          raise BadRequest, "invalid of #{address.inspect}; expected an address, such as 0x7f12a0"
        end

        def restrictions
          @restrictions ||= {
            of: of, signature: text(:like), min_size: size(:min), max_size: size(:max)
          }.compact
        end

        def size(name)
          text(name) && ByteSize.read(text(name))
        rescue ArgumentError
          raise BadRequest, "invalid #{name} #{text(name).inspect}; expected a size, such as 64 KiB"
        end

        def described(block)
          known = image.describe(block[:address])
          owner = known[:owner]
          owner = owner.merge(text: object_text(owner[:object])) if owner
          head = image.words(block[:address], [block[:size], HEAD].min)
          block.merge(state: known[:state] || block[:kind], owner: owner, head: Core::Words.text(head))
        end
      end
    end
  end
end
