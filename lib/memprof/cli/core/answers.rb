# frozen_string_literal: true

require_relative "../../core/words"

module Memprof
  module CLI
    class Core
      # Answers as chap words them, line by line; sizes and offsets are hexadecimal as there.
      class Answers
        ANCHORS = {
          "register" => "register", "stack" => "stack", "static" => "statically", "external" => "externally"
        }.freeze
        STATES = {
          "anchored" => "an anchored allocation", "garbage" => "an allocation of garbage of Ruby",
          "leaked" => "a leaked allocation", "unreferenced" => "an unreferenced allocation"
        }.freeze
        private_constant :ANCHORS, :STATES

        def initialize(core)
          @core = core
        end

        def each_line(request, &line)
          return dump(request, &line) if request.dump?
          return regions(request, &line) if request.region?
          return arenas(request, &line) if request.set == "arenas"
          return objects(&line) if request.set == "objects"

          blocks(request, &line)
        end

        private

        def blocks(request, &line)
          case request.verb
          when "count" then line.call(total(@core.count(request.set, **request.restrictions)))
          when "summarize" then summarize(request, &line)
          when "enumerate" then enumerate(request, &line)
          when "list", "show" then list(request, &line)
          else describe(request, &line)
          end
        end

        def summarize(request)
          answer = @core.summarize(request.set, **request.restrictions)
          sorted(answer[:rows], request).each { |row| yield "#{name(row)} has #{instances(row)}." }
          unless answer[:unrecognized][:count].zero?
            yield "Unrecognized allocations have #{instances(answer[:unrecognized])}."
            request.part(answer[:sizes]).each do |row|
              yield "   Unrecognized allocations of size 0x#{row[:size].to_s(16)} have #{instances(row)}."
            end
          end
          places(answer, request) { |line| yield line } if answer[:places]
          yield total(answer[:total])
        end

        def places(answer, request)
          sorted(answer[:places], request).each do |row|
            yield "Allocated at #{place_name(row)}: #{instances(row)}."
          end
          unknown = answer[:unknown]
          yield "Not in the recording: #{instances(unknown)}." unless unknown[:count].zero?
        end

        def list(request)
          counted = { count: 0, bytes: 0 }
          each_block(request, contents: request.verb == "show") do |block|
            counted[:count] += 1
            counted[:bytes] += block[:size]
            added(block) { |comment| yield comment }
            yield listed(block)
            words(block[:address], block[:words], request).each { |words| yield words } if block[:words]
            again(block) { |comment| yield comment }
            yield ""
          end
          yield total(counted)
        end

        def describe(request, &line)
          return place(request.address, request.verb, &line) if request.place?

          each_block(request) do |block|
            added(block, &line)
            place(block[:address], request.verb, &line)
            again(block, &line)
            line.call("")
          end
        end

        def enumerate(request, &line)
          each_block(request) do |block|
            added(block, &line)
            line.call(hex(block[:address]))
            again(block, &line)
          end
        end

        # Comments on the extension of a set: what added a block to it, and what led to one that was there.
        def added(block)
          step = block[:added] or return
          yield "# #{step[:rule]} from #{hex(step[:from])} adds #{hex(step[:to])}:"
        end

        def again(block)
          block[:again]&.each do |step|
            yield "# #{step[:rule]} from #{hex(step[:from])} leads to #{hex(step[:to])} again."
          end
        end

        # What is at an address, and with `explain` why it is still there.
        def place(address, verb, &line)
          return description(@core.describe(address), &line) if verb == "describe"

          answer = @core.explain(address)
          description(answer, &line)
          stack(answer, &line)
          answer[:anchor] ? anchored(answer, &line) : dangling(answer, &line)
        end

        # The calls that allocated it, if more is known than the line.
        def stack(answer, &line)
          calls = answer.fetch(:stack, [])
          return if calls.size < 2

          line.call("These calls led there, innermost first:")
          calls.each { |call| line.call("   #{Printable.line(call)}") }
        end

        def description(answer, &line)
          address = "Address #{hex(answer[:address])} is"
          case answer[:place]
          when "block" then block(address, answer, &line)
          when "object"
            line.call("#{address} in the #{answer[:type]} at #{hex(answer[:object])}, " \
                      "#{answer[:anchored] ? "which is anchored" : "which is garbage"}.")
          when "stack" then line.call("#{address} on the stack of thread #{answer[:thread]}.")
          else line.call("#{address} #{area(answer)}.")
          end
        end

        def block(address, answer)
          offset = Integer(answer[:address], 16) - Integer(answer[:start], 16)
          yield "#{address} at offset #{offset.to_s(16)} of"
          yield "#{kind(answer)} at #{hex(answer[:start])} of size #{answer[:size].to_s(16)}."
          yield signed(answer[:signature]) if answer[:signature]
          owner = answer[:owner]
          yield "It belongs to the #{owner[:type]} at #{hex(owner[:object])}." if owner
          yield allocated(answer) if answer[:allocated_at]
        end

        def kind(answer)
          return STATES.fetch(answer[:state]) if answer[:state]

          answer[:kind] == "thread_cached" ? "a thread cached free allocation" : "a free allocation"
        end

        def area(answer)
          file = " (#{answer[:file]})" if answer[:file]
          case answer[:place]
          when "static" then "in static memory#{file}"
          when "constant" then "in constant memory#{file}"
          when "ruby_page" then "in a page of Ruby's heap, but in no object"
          when "external" then "in writable memory that neither malloc nor Ruby's heap has"
          else "not mapped"
          end
        end

        def anchored(answer)
          anchor = answer[:anchor]
          directly = answer[:chain].size == 1 ? "directly" : "indirectly"
          yield "It appears to be #{directly} #{ANCHORS.fetch(anchor[:anchor])} anchored."
          from = origin(anchor)
          answer[:chain].each do |step|
            yield "#{from} references #{step_name(step)}."
            from = sentence(step)
          end
        end

        def dangling(answer, &line)
          return line.call("Nothing references it.") if answer[:referrers].empty?

          answer[:referrers].each { |step| line.call("#{sentence(step)} references it.") }
        end

        # What begins a sentence.
        def sentence(step) = step_name(step).sub(/\A./, &:upcase)

        def origin(anchor)
          file = " (#{anchor[:file]})" if anchor[:file]
          case anchor[:anchor]
          when "register" then "Register #{Integer(anchor[:from], 16)} of thread #{anchor[:thread]}"
          when "stack" then "Stack address #{hex(anchor[:from])} of thread #{anchor[:thread]}"
          when "static" then "Static address #{hex(anchor[:from])}#{file}"
          else "External address #{hex(anchor[:from])}"
          end
        end

        def step_name(step)
          return "the #{step[:type]} at #{hex(step[:address])}" if step[:place] == "object"

          "the allocation at #{hex(step[:address])} of size #{step[:size].to_i.to_s(16)}"
        end

        def arenas(request)
          answer = @core.arenas
          answer[:arenas].each { |arena| yield arena_text(arena) } unless request.verb == "count"
          mapped = answer[:mapped]
          yield "#{answer[:arenas].size} arenas; #{mapped[:count]} allocations outside of them take " \
                "#{bytes(mapped[:bytes])} bytes."
        end

        def arena_text(arena)
          free = arena[:free]
          <<~TEXT
            Arena at 0x#{hex(arena[:address])} has size #{bytes(arena[:size])},
            "top" address 0x#{hex(arena[:top])} with #{bytes(arena[:top_size])} behind it,
            #{free[:count]} free allocations take #{bytes(free[:bytes])} bytes,
            the largest of them #{bytes(arena[:largest_free])},
            #{arena[:used][:count]} used allocations take #{bytes(arena[:used][:bytes])} bytes.
          TEXT
        end

        def objects
          answer = @core.objects
          answer[:rows].each do |row|
            blocks = row[:blocks]
            yield "#{row[:type]} has #{instances(row)}, #{Units.count(row[:garbage])} of them garbage, " \
                  "which own #{Units.count(blocks[:count])} allocations of #{bytes(blocks[:bytes])} bytes."
          end
          yield "#{Units.count(answer[:empty][:count])} slots are empty."
        end

        def regions(request)
          all = @core.regions(request.set)
          all.each { |region| yield region_line(region) } unless request.verb == "count"
          word = %w[stacks modules].include?(request.set) ? request.set : "#{request.set} ranges"
          size = all.sum { |region| region[:size] }
          yield "#{Units.count(all.size)} #{word} use #{wide(size)} bytes."
        end

        def region_line(region)
          start = Integer(region[:address], 16)
          range = "[#{start.to_s(16)}, #{(start + region[:size]).to_s(16)})"
          line = "#{range} size #{bytes(region[:size])}"
          return "#{line}  #{region[:file]}" if region[:file]
          return line unless region[:thread]

          "#{line}, thread #{region[:thread]}, stack pointer #{hex(region[:stack_pointer])}"
        end

        def dump(request, &line)
          words(request.address, @core.words(request.address, request.size), request).each(&line)
        end

        def words(address, words, request)
          Memprof::Core::Words.lines(address, words, text: request.show_ascii)
        end

        def each_block(request, contents: false, &block)
          request.part(@core.each(request.set, contents: contents, **request.listed)).each(&block)
        end

        def sorted(rows, request)
          request.part(request.sort == "counts" ? rows.sort_by { |row| -row[:count] } : rows)
        end

        def listed(block)
          kind = { "used" => "Used", "free" => "Free", "thread_cached" => "Thread cached free" }[block[:kind]]
          lines = ["#{kind} allocation at #{hex(block[:address])} of size #{block[:size].to_s(16)}"]
          lines << signed(block[:signature]) if block[:signature]
          lines << allocated(block) if block[:allocated_at]
          lines.join("\n")
        end

        def allocated(block) = "It was allocated at #{place_name(block)}."

        def place_name(row)
          Printable.line([row[:allocated_at], *("(#{row[:method]})" if row[:method])].join(" "))
        end

        def signed(signature)
          signature.start_with?("%") ? "It matches pattern #{signature}." : "It has signature #{signature}."
        end

        def name(row)
          row[:kind] == "pattern" ? "Pattern #{row[:name]}" : "Signature #{row[:name]} (#{row[:place]})"
        end

        def instances(row)
          "#{row[:count]} instances taking 0x#{row[:bytes].to_s(16)}(#{Units.count(row[:bytes])}) bytes"
        end

        def total(row) = "#{row[:count]} allocations use #{wide(row[:bytes])} bytes."
        def bytes(size) = "0x#{size.to_s(16)} (#{size})"
        def wide(size) = "0x#{size.to_s(16)} (#{Units.count(size)})"
        def hex(address) = address.delete_prefix("0x")
      end
    end
  end
end
