# frozen_string_literal: true

require_relative "../../core/words"

module Memprof
  module Compat
    module Chap
      # Answers in chap's wording, line by line; like chap's, sizes and offsets are hexadecimal.
      class Answers
        ANCHORS = {
          "register" => "register", "stack" => "stack", "static" => "statically", "external" => "externally"
        }.freeze
        STATES = {
          "anchored" => "an anchored allocation", "garbage" => "an allocation of garbage of Ruby",
          "leaked" => "a leaked allocation", "unreferenced" => "an unreferenced allocation"
        }.freeze
        SIZES = 3 # shown of the blocks that objects of a class own
        private_constant :ANCHORS, :STATES, :SIZES

        def initialize(core, request)
          @core = core
          @request = request
        end

        def each_line(&line)
          @line = line
          send(@request.kind)
        end

        # The answer as data.
        def to_h
          case @request.kind
          when :memory then { words: @core.words(@request.address, @request.size) }
          when :regions then { regions: @core.regions(@request.set) }
          when :arenas then @core.arenas
          when :objects then @core.objects
          else blocks_as_data
          end
        end

        private

        def blocks_as_data
          case @request.verb
          when "count" then @core.count(@request.set, **@request.restrictions)
          when "summarize" then @core.summarize(@request.set, **@request.restrictions)
          when "describe", "explain"
            return ask(@request.address) if @request.place?

            { blocks: listed.map { |block| ask(block[:address]).merge(block.slice(:added, :again)) }.to_a }
          else { blocks: listed.to_a }
          end
        end

        # Describes or explains an address.
        def ask(address) = @core.public_send(@request.verb, address)

        def listed
          @request.part(@core.each(@request.set, contents: @request.verb == "show", **@request.listed))
        end

        def memory = words(@request.address, @core.words(@request.address, @request.size))

        def line(text) = @line.call(text)

        def blocks
          case @request.verb
          when "count" then line(total(@core.count(@request.set, **@request.restrictions)))
          when "summarize" then summarize
          when "enumerate" then each_block { |block| line(hex(block[:address])) }
          when "list", "show" then list
          else describe
          end
        end

        def summarize
          answer = @core.summarize(@request.set, **@request.restrictions)
          sorted(answer[:rows]).each { |row| line("#{name(row)} has #{instances(row)}.") }
          unless answer[:unrecognized][:count].zero?
            line("Unrecognized allocations have #{instances(answer[:unrecognized])}.")
            @request.part(answer[:sizes]).each do |row|
              line("   Unrecognized allocations of size 0x#{row[:size].to_s(16)} have #{instances(row)}.")
            end
          end
          owners(answer)
          places(answer) if answer[:places]
          line(total(answer[:total]))
        end

        # The owners of blocks owned by Ruby objects.
        def owners(answer)
          sorted(answer[:owners]).each do |row|
            line("Objects of #{Printable.line(row[:class])} own #{instances(row)}.")
            @request.part(row[:sizes]).first(SIZES).each do |size|
              line("   Those of size 0x#{size[:size].to_s(16)} have #{instances(size)}.")
            end
          end
        end

        def places(answer)
          sorted(answer[:places]).each { |row| line("Allocated at #{place_name(row)}: #{instances(row)}.") }
          unknown = answer[:unknown]
          line("Not in the recording: #{instances(unknown)}.") unless unknown[:count].zero?
        end

        def list
          counted = { count: 0, bytes: 0 }
          each_block(gap: true) do |block|
            counted[:count] += 1
            counted[:bytes] += block[:size]
            line(listing(block))
            words(block[:address], block[:words]) if block[:words]
          end
          line(total(counted))
        end

        def describe
          return place(@request.address) if @request.place?

          each_block(gap: true) { |block| place(block[:address]) }
        end

        # Yields blocks, between comments on the extension of a set: which reference added a block to it, and
        # which led to an earlier one.
        def each_block(gap: false)
          listed.each do |block|
            step = block[:added]
            line("# #{step[:rule]} from #{hex(step[:from])} adds #{hex(step[:to])}:") if step
            yield(block)
            block[:again]&.each do |other|
              line("# #{other[:rule]} from #{hex(other[:from])} leads to #{hex(other[:to])} again.")
            end
            line("") if gap
          end
        end

        # Describes an address; with `explain` also its anchor, or its referrers.
        def place(address)
          answer = ask(address)
          description(answer)
          return if @request.verb == "describe"

          stack(answer)
          answer[:anchor] ? anchored(answer) : dangling(answer)
        end

        # The calls that allocated it, if more than the line is known.
        def stack(answer)
          calls = answer.fetch(:stack, [])
          return if calls.size < 2

          line("These calls led there, innermost first:")
          calls.each { |call| line("   #{Printable.line(call)}") }
        end

        def description(answer)
          address = "Address #{hex(answer[:address])} is"
          case answer[:place]
          when "block" then block(address, answer)
          when "object"
            line("#{address} in the #{object(answer)} at #{hex(answer[:object])}, " \
                 "#{answer[:anchored] ? "which is anchored" : "which is garbage"}.")
          when "stack" then line("#{address} on the stack of thread #{answer[:thread]}.")
          else line("#{address} #{area(answer)}.")
          end
        end

        def block(address, answer)
          offset = Integer(answer[:address], 16) - Integer(answer[:start], 16)
          line("#{address} at offset #{offset.to_s(16)} of")
          line("#{kind(answer)} at #{hex(answer[:start])} of size #{answer[:size].to_s(16)}.")
          line(signed(answer)) if answer[:signature]
          owner = answer[:owner]
          line("It belongs to the #{object(owner)} at #{hex(owner[:object])}.") if owner
          line(allocated(answer)) if answer[:allocated_at]
        end

        # The class, or the type of a VM-internal object.
        def object(answer) = Printable.line(answer[:of_class] || answer[:type])

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
          line("It appears to be #{directly} #{ANCHORS.fetch(anchor[:anchor])} anchored.")
          from = origin(anchor)
          answer[:chain].each do |step|
            label = " through #{Printable.line(step[:label])}" if step[:label]
            line("#{from} references #{step_name(step)}#{label}.")
            from = sentence(step)
          end
        end

        def dangling(answer)
          line("Nothing references it.") if answer[:referrers].empty?
          answer[:referrers].each { |step| line("#{sentence(step)} references it.") }
        end

        # The name at the start of a sentence.
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
          return "the #{object(step)} at #{hex(step[:address])}" if step[:place] == "object"

          "the allocation at #{hex(step[:address])} of size #{step[:size].to_i.to_s(16)}"
        end

        def arenas
          answer = @core.arenas
          answer[:arenas].each { |arena| line(arena_text(arena)) } unless @request.verb == "count"
          mapped = answer[:mapped]
          line("#{answer[:arenas].size} arenas; #{mapped[:count]} allocations outside of them take " \
               "#{bytes(mapped[:bytes])} bytes.")
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
            line("#{row[:type]} has #{instances(row)}#{owned(row)}.")
          end
          line("#{Units.count(answer[:empty][:count])} slots are empty.")
          line("Their blocks are not known: #{answer[:unknown]}.") if answer[:unknown]
        end

        def owned(row)
          blocks = row[:blocks] or return
          ", #{Units.count(row[:garbage])} of them garbage, " \
            "which own #{Units.count(blocks[:count])} allocations of #{bytes(blocks[:bytes])} bytes"
        end

        def regions
          set = @request.set
          all = @core.regions(set)
          all.each { |region| line(region_line(region)) } unless @request.verb == "count"
          word = %w[stacks modules].include?(set) ? set : "#{set} ranges"
          size = all.sum { |region| region[:size] }
          line("#{Units.count(all.size)} #{word} use #{wide(size)} bytes.")
        end

        def region_line(region)
          start = Integer(region[:address], 16)
          range = "[#{start.to_s(16)}, #{(start + region[:size]).to_s(16)})"
          text = "#{range} size #{bytes(region[:size])}"
          return "#{text}  #{region[:file]}" if region[:file]
          return text unless region[:thread]

          "#{text}, thread #{region[:thread]}, stack pointer #{hex(region[:stack_pointer])}"
        end

        def words(address, words)
          Core::Words.lines(address, words, text: @request.show_ascii).each { |text| line(text) }
        end

        def sorted(rows)
          @request.part(@request.sort == "counts" ? rows.sort_by { |row| -row[:count] } : rows)
        end

        def listing(block)
          kind = { "used" => "Used", "free" => "Free", "thread_cached" => "Thread cached free" }[block[:kind]]
          lines = ["#{kind} allocation at #{hex(block[:address])} of size #{block[:size].to_s(16)}"]
          lines << signed(block) if block[:signature]
          lines << allocated(block) if block[:allocated_at]
          lines.join("\n")
        end

        def allocated(block) = "It was allocated at #{place_name(block)}."

        def place_name(row)
          Printable.line([row[:allocated_at], *("(#{row[:method]})" if row[:method])].join(" "))
        end

        # With the C++ class, if it has one, as in chap.
        def signed(block)
          signature = block[:signature]
          return "It matches pattern #{signature}." if signature.start_with?("%")

          "It has signature #{signature}#{" (#{Printable.line(block[:class])})" if block[:class]}."
        end

        def name(row)
          return "Pattern #{row[:name]}" if row[:kind] == "pattern"

          "Signature #{row[:name]} (#{Printable.line(row[:class] || row[:place])})"
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
