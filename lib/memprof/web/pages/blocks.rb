# frozen_string_literal: true

require_relative "../../byte_size"
require_relative "../../core/words"
require_relative "../../core/writable"

module Memprof
  class Web
    module Pages
      # A page about the malloc blocks in a core file.
      class CorePage < HeapPage
        def self.there?(_heaps, entry) = entry.core?

        def breadcrumbs = super + [["Blocks", here("/blocks")]]

        private

        # Asks the core file a question.
        def core(question, *arguments, **parameters)
          image # raises if there is no core file
          entry.core_answer(question, *arguments, **parameters)
        rescue ArgumentError, Unsupported => e
          raise BadRequest, e.message
        end

        # The core file itself, for questions about one address, whose answers are not cached.
        def image
          raise NotFound, "#{entry.name} has no blocks of malloc; only core files do" unless entry.core?

          entry.core
        end

        # The heap's description of the object at an address: nil if the file has no Ruby.
        def object_text(address)
          heap.at(address)&.to_s if ruby?
        end

        def ruby? = !core(:overview)[:ruby_pages].nil?
      end

      # Where the writable memory of a core file went, and what was leaked.
      class Blocks < CorePage
        at "/heaps/:heap/blocks", title: "Blocks of malloc", menu: "Blocks", order: 105

        MOST = 12 # rows of each table
        private_constant :MOST

        def breadcrumbs = [[entry.name, here]]

        def command = command_line("core")

        def data
          overview = core(:overview)
          known = {
            overview: overview, parts: Core::Writable.parts(overview), faults: Core::Writable.faults(overview)
          }
          overview[:unknown] ? known : known.merge(counted)
        end

        private

        def counted
          arenas = core(:arenas)
          {
            leaked: groups(:leaked), native: groups(:native),
            objects: core(:objects)[:rows].select { |row| row[:blocks][:count].positive? }.first(MOST),
            largest: core(:largest, :used, limit: MOST), arenas: arenas[:arenas].first(MOST),
            more_arenas: [arenas[:arenas].size - MOST, 0].max, mapped: arenas[:mapped]
          }
        end

        # Groups of similar blocks, most bytes first: by signature or pattern, or else by size.
        def groups(set)
          answer = core(:summarize, set)
          rows = answer[:rows].map { |row| { signature: row[:name], **row.slice(:place, :count, :bytes) } }
          rows += answer[:sizes].map { |row| { signature: "?", **row } }
          most = rows.max_by(MOST) { |row| row[:bytes] }
          { total: answer[:total], rows: most, more: rows.size - most.size }
        end
      end

      # Blocks of a set, largest first.
      class BlockList < CorePage
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
        # Sets relative to an address.
        RELATED = { incoming: "that reference", outgoing: "referenced by" }.freeze
        HEAD = 32 # bytes of a block that the list shows
        private_constant :HEAD

        # Its numbers are hexadecimal.
        def command
          sizes = { "/minsize" => size(:min), "/maxsize" => size(:max) }.compact
          words = [set, of, text(:like), *sizes.flat_map { |word, bytes| [word, bytes.to_s(16)] }].compact
          command_line("core", "list", *words.map(&:to_s))
        end

        def title = of ? "Blocks #{RELATED.fetch(set)} #{of}" : "Blocks: #{SETS.fetch(set)}"

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

        # The address that the set is relative to.
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

      # One malloc block: its contents, why it is still there, and what references it.
      class Block < CorePage
        at "/heaps/:heap/blocks/at/:address"

        SHOWN = 1024 # bytes of the contents
        EACH = 25
        ZEROS = /\A\h+: +0 +0 /
        private_constant :EACH, :ZEROS

        def title = "Block at #{answer[:start]}"

        def command = command_line("core", "explain", answer[:start].delete_prefix("0x"))

        def data
          references = image.references(answer[:start], limit: EACH)
          owner = answer[:owner]
          answer.slice(:start, :size, :kind, :signature, :anchor).merge(references,
            state: answer[:state] || answer[:kind], signature_place: signature_place,
            owner: owner && named(owner), chain: all_named(answer[:chain]), contents: contents,
            incoming: all_named(references[:incoming]), outgoing: all_named(references[:outgoing]))
        end

        private

        def answer
          @answer ||= begin
            address = captures.fetch(:address)
            found = image.explain(address) if address.match?(/\A0x\h{1,16}\z/)
            raise NotFound, "no block at address #{address}" unless found && found[:place] == "block"

            found
          end
        end

        # Lines; several lines of zeros are merged into one.
        def contents
          lines = Core::Words.lines(answer[:start], image.words(answer[:start], [answer[:size], SHOWN].min))
          lines.chunk_while { |one, other| one.match?(ZEROS) && other.match?(ZEROS) }.flat_map do |alike|
            alike.size > 2 ? [alike.first, "... #{(alike.size - 1) * 16} bytes more are zero"] : alike
          end
        end

        # The library that the first word points into.
        def signature_place
          signature = answer[:signature]
          image.describe("0x#{signature}")[:file] if signature&.match?(/\A\h+\z/)
        end

        def all_named(steps) = steps.map { |step| named(step) }

        # With the heap's description of an object.
        def named(step) = step[:object] ? step.merge(text: object_text(step[:object])) : step
      end
    end
  end
end
