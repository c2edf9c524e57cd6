# frozen_string_literal: true

require_relative "../../core/words"

module Memprof
  class Web
    module Pages
      # One block of malloc: what it contains, why it is still there, and what references it.
      class Block < CorePage
        at "/heaps/:heap/blocks/at/:address"

        # Bytes of the contents that are shown.
        SHOWN = 1024
        EACH = 25
        ZEROS = /\A\h+: +0 +0 /
        private_constant :EACH, :ZEROS

        def title = "Block at #{answer[:start]}"

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

        # Lines; zeros that fill several are one line.
        def contents
          lines = Core::Words.lines(answer[:start], image.words(answer[:start], [answer[:size], SHOWN].min))
          lines.chunk_while { |one, other| one.match?(ZEROS) && other.match?(ZEROS) }.flat_map do |alike|
            alike.size > 2 ? [alike.first, "... #{(alike.size - 1) * 16} bytes more are zero"] : alike
          end
        end

        # Where in a library the first word points to.
        def signature_place
          signature = answer[:signature]
          image.describe("0x#{signature}")[:file] if signature&.match?(/\A\h+\z/)
        end

        def all_named(steps) = steps.map { |step| named(step) }

        # With the words of the heap for an object.
        def named(step)
          step[:object] ? step.merge(text: object_text(step[:object])) : step
        end
      end
    end
  end
end
