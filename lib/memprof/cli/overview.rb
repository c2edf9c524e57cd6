# frozen_string_literal: true

require_relative "listing"
require_relative "../units"

module Memprof
  module CLI
    # A dump in numbers, laid out.
    module Overview
      COUNTED = {
        classes: "class", singleton_classes: "singleton class", modules: "module", methods: "method",
        iseqs: "instruction sequence", strings: "string", symbols: "symbol", arrays: "array", hashes: "hash",
        structs: "struct", procs: "proc", threads: "thread", fibers: "fiber", files: "open file",
        source_files: "source file", shapes: "shape"
      }.freeze
      private_constant :COUNTED

      class << self
        def tell(page, file, answer)
          objects = answer[:objects]
          page.heading("#{file}: #{Units.objects(objects[:count])}, #{Units.bytes(objects[:size])}")
          page.facts(facts(answer))
          page.listing(types(answer), heading: "By type")
          page.listing(classes(answer), heading: "Classes that retain most")
          page.listing(roots(answer), heading: "Kept alive by each root alone")
          page.heading("There are").text(counts(answer[:counts]))
          answer[:warnings].each { |warning| page.paragraph("Note: #{warning.delete_suffix(".")}.") }
        end

        def types(answer)
          listing = Listing.new.column("Size", :bytes, :size).column("Share", :percent, :percent)
            .column("Objects", :count, :count).column("Type", :name, :type)
          answer[:types].each { |type| listing.row(*type.values_at(:size, :percent, :count, :type)) }
          listing
        end

        private

        def facts(answer)
          process = answer[:process]
          {
            "Dump" => dump(answer), "Program" => program(process), "Ruby" => process[:ruby],
            "Memory" => memory(answer), "Places" => places(answer), "Garbage" => garbage(answer[:unreachable])
          }
        end

        def dump(answer)
          time = answer[:process][:time].to_s[0, 19].tr("T", " ")
          "#{answer[:source][:format]}#{", made #{time} UTC" unless time.empty?}"
        end

        def program(process)
          pid = "process #{process[:pid]}" if process[:pid]
          host = "on #{process[:hostname]}" if process[:hostname]
          [process[:program], pid, host].compact.join(", ")
        end

        def memory(answer)
          slots = answer[:slots]
          parts = []
          if slots
            parts << "#{Units.bytes(slots[:size])} in slots, #{Units.bytes(slots[:outside])} outside of them"
          end
          rss = answer[:process][:rss]
          parts << "#{Units.bytes(rss)} resident in all" if rss
          parts.join("; ")
        end

        def places(answer)
          all = answer[:objects][:count]
          known = all.positive? ? answer[:tracked][:count] * 100.0 / all : 0.0
          first, last = answer.values_at(:first_generation, :last_generation)
          made = ", made in generations #{first} to #{last}" if first
          "known of #{Cell.percent(known)} of the objects#{made}"
        end

        def garbage(garbage)
          return unless garbage && garbage[:count].positive?

          "#{Units.objects(garbage[:count])} (#{Units.bytes(garbage[:size])}) that no root reaches"
        end

        def classes(answer)
          listing = Listing.new.column("Retained", :bytes, :retained).column("Share", :percent, :percent)
            .column("Objects", :count, :count).column("Size", :bytes, :size).column("Class", :name, :class)
          keys = %i[retained percent count size key]
          answer[:classes].each { |row| listing.row(*row.values_at(*keys)) }
          listing
        end

        def roots(answer)
          listing = Listing.new.column("Retained", :bytes, :retained).column("Share", :percent, :percent)
            .column("References", :count, :references).column("Root", :name, :root)
          answer[:roots].each { |root| listing.row(*root.values_at(:retained, :percent, :references, :root)) }
          shared = answer[:shared_by_roots]
          listing.row(shared, share(shared, answer), nil, "(several together)") if shared
          listing
        end

        def share(size, answer)
          whole = answer[:objects][:size]
          whole.positive? ? size * 100.0 / whole : 0.0
        end

        def counts(counts)
          there = COUNTED.select { |name, _| counts[name].to_i.positive? }
          "#{there.map { |name, word| Cell.plural(counts[name], word) }.join(", ")}."
        end
      end
    end
  end
end
