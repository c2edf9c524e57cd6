# frozen_string_literal: true

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
        def render(page, file, answer)
          objects = answer[:objects]
          page.heading("#{file}: #{Units.objects(objects[:count])}, #{Units.bytes(objects[:size])}")
          page.facts(facts(answer))
          page.listing(types(answer), heading: "By type")
          page.listing(classes(answer), heading: "Classes that retain the most")
          page.listing(roots(answer), heading: "Retained by each root")
          counted = counts(answer[:counts])
          page.heading("Counts").text(counted) if counted
          answer[:warnings].each { |warning| page.paragraph(Wording.note(warning)) }
        end

        def types(answer)
          Listing.new.columns(:size).columns(:shallow_percent, as: :percent)
            .columns(:count, :type)
            .rows(answer[:types])
        end

        private

        def facts(answer)
          process = answer[:process]
          {
            "Dump" => dump(answer), "Program" => program(process), "Ruby" => process[:ruby],
            "Memory" => memory(answer), "Allocated at" => sites(answer),
            "Garbage" => garbage(answer[:unreachable])
          }
        end

        def dump(answer)
          time = answer[:process][:time].to_s[0, 19].tr("T", " ")
          "#{answer[:source][:format]}#{", written #{time} UTC" unless time.empty?}"
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
            parts << "#{Units.bytes(slots[:size])} in slots, #{Units.bytes(slots[:outside])} outside of slots"
          end
          rss = answer[:process][:rss]
          parts << "#{Units.bytes(rss)} resident" if rss
          parts.join("; ")
        end

        def sites(answer)
          all = answer[:objects][:count]
          known = all.positive? ? answer[:tracked][:count] * 100.0 / all : 0.0
          first, last = answer.values_at(:first_generation, :last_generation)
          generations = ", generations #{first} to #{last}" if first
          "known for #{Units.percentage(known)} of the objects#{generations}"
        end

        def garbage(garbage)
          return unless garbage && garbage[:count].positive?

          "#{Units.objects(garbage[:count], garbage[:size])} unreachable from the roots"
        end

        def classes(answer)
          Listing.new.columns(:retained, :percent, :count, :size)
            .columns(:class, from: :key)
            .rows(answer[:classes])
        end

        def roots(answer)
          listing = Listing.new.columns(:retained, :percent, :references, :root)
            .rows(answer[:roots])
          shared = answer[:shared_by_roots]
          listing.row(shared, share(shared, answer), nil, "(shared by several roots)") if shared
          listing
        end

        def share(size, answer)
          whole = answer[:objects][:size]
          whole.positive? ? size * 100.0 / whole : 0.0
        end

        def counts(counts)
          there = COUNTED.select { |name, _| counts[name].to_i.positive? }
          "#{there.map { |name, word| Units.plural(counts[name], word) }.join(", ")}." if there.any?
        end
      end
    end
  end
end
