# frozen_string_literal: true

require_relative "../core/writable"

module Memprof
  module CLI
    class Core
      # A core file at a glance: where its writable memory went, and what is leaked.
      class Summary
        SIZES = 5
        TYPES = 8
        PLACES = 10
        private_constant :SIZES, :TYPES, :PLACES

        # `source` is the core file or process, and the recording, as command-line arguments.
        def initialize(command, terminal, source, core)
          @command = command
          @terminal = terminal
          @source = source
          @core = core
          @answer = terminal.busy { core.overview }
        end

        def render
          faults.each { |fault| @terminal.warn(fault) } if @command.output_format == :json
          status = @command.present(data) { |page| lay_out(page) }
          @command.next_steps(steps)
          faults.empty? ? status : 2
        end

        private

        def faults = @faults ||= Memprof::Core::Writable.faults(@answer)

        def data
          return @answer unless @command.output_format == :json

          @answer.merge(leaks: (leaks unless @answer[:unknown]), objects: @core.objects)
        end

        def lay_out(page)
          page.heading(heading)
          faults.each { |fault| page.text("Note: #{fault}.") }
          page.facts(facts)
          page.listing(memory, heading: "Writable memory")
          lay_out_leaks(page) if leaked?
          page.listing(objects, heading: "Ruby objects") if @answer[:ruby_pages]
        end

        def lay_out_leaks(page)
          page.listing(sizes, heading: "Leaked: neither memory nor objects reference these blocks")
          page.listing(places, heading: "Leaked blocks by the line that allocated them") if recording
        end

        def heading
          name = [@answer[:command], ("process #{@answer[:pid]}" if @answer[:pid])].compact.join(", ")
          return "#{name}, paused for #{(@core.pause * 1000).round(1)} ms" if @core.pause

          "#{File.basename(@source.first)}: #{name}"
        end

        def facts
          arenas = @answer[:arenas]
          {
            "Processor" => @answer[:machine], "Threads" => @answer[:threads],
            "Signal" => signal,
            "Allocator" => allocator(arenas),
            "Ruby's heap" => pages, "Recording" => recorded
          }
        end

        def signal
          number = @answer[:signal]
          number && "#{number} (#{Signal.signame(number) || "unknown"})"
        end

        def allocator(arenas)
          name = @answer[:allocator] or return "unknown"
          return name if @answer[:unknown]

          "#{name}, #{Units.plural(arenas[:count], "arena")}, #{Units.bytes(arenas[:bytes])}; " \
            "#{Units.plural(@answer[:mapped][:count], "block")} outside of arenas"
        end

        def pages
          pages = @answer[:ruby_pages] or return
          "#{Units.plural(pages[:count], "page")} of #{Units.bytes(pages[:bytes] / pages[:count])}"
        end

        def memory
          Listing.new.columns(:memory, as: :bytes)
            .columns(:share, as: :percent) { |part| part[:bytes] * 100.0 / @answer[:writable] }
            .columns(:number, as: :count).columns(:what)
            .rows(Memprof::Core::Writable.parts(@answer))
        end

        def leaked? = @answer[:leaked] && @answer[:leaked][:count].positive?

        def leaks = @leaks ||= @core.summarize(:leaked)
        def recording = @answer[:recording]

        def recorded
          facts = recording or return
          known, unknown = facts.values_at(:known, :unknown).map { |total| total[:count] }
          parts = ["#{Units.plural(known, "used block")} known, #{Units.count(unknown)} not in it"]
          parts << "a sample every #{Units.bytes(facts[:sample])} on average" if facts[:sample]
          parts << "it ended before" if facts[:ended]
          parts << "damaged at byte #{facts[:damaged_at]}" if facts[:damaged_at]
          parts.join("; ")
        end

        def places
          unknown = leaks[:unknown].merge(allocated_at: "not in the recording")
          rows = leaks[:places] + [unknown].select { |row| row[:count].positive? }
          Listing.new.columns(:memory, as: :bytes).columns(:blocks, as: :count)
            .columns(:site, as: :allocated_at, kind: :name) { |row| place_name(row) }
            .rows(rows.max_by(PLACES) { |row| row[:bytes] })
        end

        def place_name(row) = [row[:allocated_at], *("(#{row[:method]})" if row[:method])].join(" ")

        def sizes
          Listing.new.columns(:memory, as: :bytes).columns(:blocks, as: :count)
            .columns(:each, as: :size)
            .columns(:what) { |row| row[:class] || row[:place] || row[:name] }
            .rows([*leaks[:rows], *leaks[:sizes]].max_by(SIZES) { |row| row[:bytes] })
        end

        # The size with the most leaked bytes.
        def most_of_one_size
          size = leaks[:sizes].first&.fetch(:size)
          size ? { min_size: size, max_size: size } : {}
        end

        def objects
          Listing.new.columns(:block_bytes, as: :blocks) { |row| row.dig(:blocks, :bytes) }
            .columns(:slot_bytes, as: :bytes).columns(:count, :garbage, :type)
            .rows(@core.objects[:rows].first(TYPES))
        end

        def steps
          return [] if @answer[:unknown]

          file = ["core", *@source]
          steps = [[[*file, "summarize", "used"], "by signature and owner"]]
          return steps unless leaked?

          largest = @core.each(:leaked, **most_of_one_size).first
          one = largest[:address].delete_prefix("0x")
          steps.unshift([[*file, "show", "allocation", one], "what one contains"])
          steps.unshift([[*file, "summarize", "leaked"], "all leaked blocks by size"])
        end
      end
    end
  end
end
