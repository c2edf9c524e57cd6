# frozen_string_literal: true

module Memprof
  class Core
    # Where the writable memory of a process went: parts that add up to all of it.
    module Writable
      class << self
        # Parts from {Core#overview}: `:what`, `:bytes`, `:count`, and the `:set` of its blocks if it consists
        # of blocks; largest first, without empty parts.
        def parts(overview)
          known = [*blocks(overview), *others(overview)]
          rest = overview[:writable] - known.sum { |part| part[:bytes] }
          all = [*known, part("unused stack, block headers, gaps between blocks", { bytes: rest })]
          all.select { |part| part[:bytes].positive? }.sort_by { |part| -part[:bytes] }
        end

        # Why numbers are unknown or incomplete, in sentences: the file, or the heap in it.
        def faults(overview)
          [*missing(overview[:missing]), overview[:unknown], *uncounted(overview[:uncounted]),
            *damage(overview)].compact
        end

        private

        def missing(bytes)
          ["#{Units.bytes(bytes)} of the file are missing; answers are incomplete"] if bytes.positive?
        end

        def uncounted(allocator)
          ["the process uses #{allocator}, too, whose blocks memprof cannot read"] if allocator
        end

        def damage(overview)
          corruptions, skipped = overview.values_at(:corruptions, :skipped)
          faults = corruptions.first(3).map { |one| corruption(one) }
          faults << "#{corruptions.size - 3} more places are damaged" if corruptions.size > 3
          faults << "#{Units.bytes(skipped)} of arenas cannot be read as blocks" if skipped.positive?
          faults
        end

        def part(what, total, set = nil)
          { what: what, bytes: total[:bytes], count: total[:count], set: set }
        end

        def blocks(overview)
          return [] if overview[:unknown]

          owned, garbage = overview.values_at(:owned, :garbage)
          {
            ["blocks of Ruby objects", :owned] => owned.to_h { |key, value| [key, value - garbage[key]] },
            ["blocks that only garbage of Ruby references", :garbage] => garbage,
            ["blocks of C code, including the VM's", :native] => overview[:native],
            ["leaked blocks", :leaked] => overview[:leaked], ["free blocks", :free] => overview[:free]
          }.map { |(what, set), total| part(what, total, set) }
        end

        def others(overview)
          {
            "free ends of arenas" => { bytes: overview[:tops].to_i },
            "pages of Ruby's heap" => overview[:ruby_pages] || { bytes: 0 },
            "stacks in use" => overview[:stacks], "variables of libraries" => overview[:statics],
            "other mappings" => overview[:external],
            "other mappings, zero: mostly never written to" => { bytes: overview[:zeros] }
          }.map { |what, total| part(what, total) }
        end

        def corruption(one)
          what = one[:what] == "size" ? "an impossible size" : "a broken list of free blocks (#{one[:what]})"
          "the heap is damaged: #{what} at #{one[:address]}"
        end
      end
    end
  end
end
