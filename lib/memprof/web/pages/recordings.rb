# frozen_string_literal: true

require_relative "../../source"
require_relative "../frames"

module Memprof
  class Web
    module Pages
      # A page about a malloc recording. `value` selects which bytes are shown, `from` and `to` a time range,
      # in seconds after the start.
      class RecordingPage < RecordPage
        VALUES = %w[peak leaked allocated].freeze
        WORDS = {
          "peak" => "live at the peak", "leaked" => "live at the end", "allocated" => "allocated"
        }.freeze

        def value = choice(:value, VALUES, "peak")

        def command = command_line("malloc", **part)

        def range = part_of_time("the start")

        # Parameters that links to other pages of the same time range carry.
        def part = { from: text(:from), to: text(:to) }

        private

        def chosen = range || {}
      end

      # `/malloc/1`: a malloc recording: the peak, live memory at the end, consumption over time, lines,
      # sizes. `location` selects lines by a part of their names.
      class Recording < RecordingPage
        at "/malloc/:id", assets: %w[timeline.js]

        EACH = 50
        SORT = { "peak" => :peak_bytes, "leaked" => :leaked_bytes, "allocated" => :allocated_bytes,
                 "blocks" => :leaked, "calls" => :allocations, "temporary" => :temporary }.freeze
        private_constant :SORT

        def data
          summary = content.summary(**chosen)
          rows = content.locations(SORT.fetch(sort), part: text(:location), **chosen)
          summary.reject { |key, _| %i[locations timeline].include?(key) }.merge(
            range: range, timeline: content.timeline, location: text(:location), locations: rows.size,
            rows: rows_of_page(rows, EACH)
          )
        end

        def sort = choice(:sort, SORT.keys, "peak")

        # The sort key of the rows.
        def key = SORT.fetch(sort)
      end

      # `/malloc/1/flame`: the call stacks that allocated, as a flame graph. `vm=yes` shows the VM's native
      # frames, `before` compares with another recording.
      class RecordingFlame < RecordingPage
        at "/malloc/:id/flame", title: "malloc by call stack", assets: %w[flame.js flame.css]

        def command = command_line("malloc", tree: true, value: value, **part)

        def data
          flame = flame_of(record)
          flame = Frames.difference(flame_of(earlier), flame) if earlier
          { values: VALUES, **content.summary.slice(:callers, :sample), range: range, vm: vm?, folded: 0,
            **Frames.widest(flame) }
        end

        # Whether there are native frames of the VM.
        def native? = Frames.vm?(content.flame(value.to_sym, **chosen))

        # Whether they are shown.
        def vm? = choice(:vm, %w[yes no], "no") == "yes"

        private

        # Without the VM's frames, unless all are the VM's.
        def flame_of(record)
          flame = record.content.flame(value.to_sym, **chosen)
          own = Frames.without_vm(flame) unless vm?
          flame = own if own && own[:frames].size > 1
          flame.merge(names: flame[:names].map { |name| short(name) })
        end

        # Starts at the gem: the rest of a path does not fit into a frame.
        def short(name) = name.end_with?(")", "]") ? Records::Tracked.short(name) : Paths.short(name)
      end

      # `/malloc/1/line?at=app.rb:12`: allocations of a line, and its callers.
      class RecordingLine < RecordingPage
        at "/malloc/:id/line"

        def title = Paths.short(location)

        def command = command_line("malloc", callers: true, value: value, **part)

        def data
          summary = content.summary(**chosen)
          row = summary[:locations].find { |one| one[:location] == location }
          raise NotFound, "nothing was allocated at #{location}" unless row

          file, _, line = location.rpartition(":")
          row.merge(values: VALUES, range: range, line: line.to_i, sample: summary[:sample],
            source: Source.lines(file, line.to_i),
            callers: content.callers(location, value.to_sym, **chosen))
        end

        def bytes = :"#{value}_bytes"

        private

        def location = text(:at) || raise(BadRequest, "at is missing")
      end
    end
  end
end
