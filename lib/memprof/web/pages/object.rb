# frozen_string_literal: true

require_relative "../../core/words"
require_relative "../../source"

module Memprof
  class Web
    module Pages
      # Everything known about one object.
      class Object < HeapPage
        at "/heaps/:heap/objects/:address", assets: %w[references.js references.css]

        EACH = 25
        SHOWN = 1024 # bytes of a block's contents
        ZEROS = /\A\h+: +0 +0 /
        private_constant :EACH, :ZEROS

        def title = answer[:text]

        def command = command_line("show", answer[:address])

        def breadcrumbs
          super + [["Objects", here("/objects")]]
        end

        def data
          %i[references referrers].each { |name| existing(answer[name], page_of(name)) }
          answer.merge(below: ask(:tree, of: answer[:address], depth: 1, limit: EACH),
            source: source(answer[:site]), written: written, contents: contents,
            each: EACH, references_page: page_of(:references), referrers_page: page_of(:referrers))
        end

        private

        def answer
          @answer ||= ask(:object, of: found, limit: EACH, references_offset: offset(:references),
            referrers_offset: offset(:referrers))
        end

        def found
          address = captures.fetch(:address)
          object = address.match?(/\A0x\h{1,16}\z/) && heap.at(address)
          object ? object.id : raise(NotFound, "no object at address #{address}")
        end

        def page_of(name) = integer(name, 1)

        def offset(name) = (page_of(name) - 1) * EACH

        def source(site) = site && Source.lines(site[:file], site[:line])

        # A proc is written at its block, but allocated at the line that calls the method with the block, or
        # that calls `proc` or `to_proc`.
        def written
          file, line = answer[:facts].to_h.values_at("source_file", "source_line")
          return unless file.is_a?(String) && line.is_a?(Integer)

          { file: file, line: line, source: source({ file: file, line: line }) }
        end

        # The words of a malloc block, in lines; several lines of zeros are merged into one.
        def contents
          return unless answer[:type] == "block" && entry.core?

          start = answer[:address]
          lines = Core::Words.lines(start, entry.core.words(start, [answer[:size], SHOWN].min))
          lines.chunk_while { |one, other| one.match?(ZEROS) && other.match?(ZEROS) }.flat_map do |alike|
            alike.size > 2 ? [alike.first, "... #{(alike.size - 1) * 16} bytes more are zero"] : alike
          end
        end
      end
    end
  end
end
