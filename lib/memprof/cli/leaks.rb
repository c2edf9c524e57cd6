# frozen_string_literal: true

require_relative "../dump/options"
require_relative "../own_code"
require_relative "../verdict_wording"

module Memprof
  module CLI
    # `memprof leaks`: what grows in a process and why, or what retains a large part of a heap.
    class Leaks < HeapCommand
      include LiveProcess

      SUMMARY = "shows what grows in a process, and what retains most of a dump"
      USAGE = "[OPTIONS] FILE... | PID..."
      DETAILS = <<~TEXT
        With the ID of a process, leaks dumps it three times in a minute (--for), and
        shows what grows: what retains it, where it was allocated, and why it is
        retained, as far as the heap shows that. The process need not have loaded
        memprof: if it has not, it is copied, and paused for milliseconds only. Lines
        are known of processes that have loaded memprof/signal. Processes that PID has
        forked are looked at, too; those that run the same code count together, as the
        workers of a server do. The dumps are kept for `memprof web --library`, without
        values unless --values asks for them. Ctrl-C ends it early.

        Several files are dumps of one process, the oldest first, and get the same
        answer. Objects whose paths from the roots are alike, but for indices and keys,
        count together. memprof's own objects are not counted.

        One dump can't show growth. A suspect is an object that retains a tenth of the
        heap or more, or many objects of one class that together retain as much. For
        each suspect, leaks shows what it retains, where that was allocated, and what
        retains it. Own code is the line of the application behind it: of a block that a
        gem retains, the line that it was written on. The application is what is no gem
        and no library of Ruby, or the files whose paths match --own.

        With --fail it exits with 1 if something grows, and with 2 if that is unknown.

        Examples:
          memprof leaks 4711
          memprof leaks --for 10m --fail 4711
          memprof leaks heap.memprof
          memprof leaks --own '/engines/shop/' heap.memprof
          memprof leaks 1.memprof 2.memprof 3.memprof 4.memprof
      TEXT
      # Options of each way to call it.
      OF_PROCESSES = %i[for attach values force].freeze
      OF_ONE_DUMP = %i[threshold].freeze
      UNITS = { "" => 1, "s" => 1, "m" => 60, "h" => 3600 }.freeze
      LONGEST = 7 * 24 * 3600 # seconds
      private_constant :OF_PROCESSES, :OF_ONE_DUMP, :UNITS, :LONGEST

      def call(arguments)
        raise UsageError, "FILE or PID is missing; see `memprof help leaks`" if arguments.empty?

        pids, files = arguments.partition { |argument| pid?(argument) }
        raise UsageError, "expected files or process ids, not both" if pids.any? && files.any?

        refuse_options(OF_PROCESSES, "needs a PID") if pids.empty?
        refuse_options(OF_ONE_DUMP, "needs a single FILE") unless files.one?
        refuse_options(%i[fail], "needs a PID or several files") if files.one?
        return live(pids) if pids.any?

        files.each { |file| check_readable(file) }
        files.one? ? one(files.first) : many(files)
      end

      private

      def define_own_options
        checked("--threshold PERCENT", Float, "share of the heap of a suspect (default: 10)",
          :threshold, "a number above 0 and at most 100") do |percent|
          percent if percent.positive? && percent <= 100
        end
        count("--limit N", "the first N suspects (default: 10); of several", "dumps, findings (default: 3)",
          :limit)
        text("--own PATTERN", "own code: files whose paths match this regexp", :own)
        flag("--fail", "exit with 1 if something grows, with 2 if that is", "unknown", :fail)
        define_live_options
      end

      def define_live_options
        checked("--for TIME", "of PID: time from first to last dump, as 90s, 10m or", "2h (default: 60s)",
          :for, "a time of at most a week, as 90s, 10m or 2h") { |text| time(text) }
        flag("--attach", "of PID: load memprof there meanwhile, for lines:",
          "it tracks one object in 8, and malloc",
          :attach)
        values = Memprof::Dump::Options::VALUES
        one_of(values, "--values WHAT", "of PID: contents of strings etc. in the dumps that", "are kept: " \
          "#{values.join(", ")}", "(default: none)", :values)
        flag("--force", "of PID: copy it even if its cgroup might reach its", "limit", :force)
      end

      def time(text)
        number, unit = text.match(/\A(\d+(?:\.\d+)?)([smh]?)\z/)&.captures
        seconds = number.to_f * UNITS.fetch(unit || "")
        seconds if seconds.positive? && seconds <= LONGEST
      end

      def suspects(heap)
        OwnCode.with_source(ask(heap, :suspects, **@options.slice(:threshold, :limit, :own)))
      end

      def one(file)
        answer = suspects(open_heap(file)).merge(leaked_blocks(file))
        suspect = answer[:suspects].first
        steps = suspect ? steps(file, suspect[:object][:address]) : [[["top", file], "the largest objects"]]
        present(answer, steps) do |page|
          output_format == :csv ? table(page, file, answer) : render(page, file, answer)
        end
      end

      def steps(file, address)
        [
          [["show", file, address], "details of the first suspect"],
          [["tree", file, address], "what it retains, level by level"],
          [["histogram", file], "objects by class"]
        ]
      end

      def render(page, file, answer)
        page.heading(title(file, answer))
        page.text("One dump shows what is large; two or more, or a PID, show what grows.")
        answer[:suspects].each_with_index do |suspect, index|
          page.paragraph("#{index + 1}. #{Wording.phrase(suspect[:phrase])}")
          page.facts(own_code(suspect[:own])) if suspect[:own]
          page.listing(accumulated(suspect))
          page.listing(Objects.path(suspect[:path]))
        end
        more(page, answer[:more], "suspect")
        page.paragraph(blocks(file, answer[:blocks])) if answer[:blocks]
        warn(page, answer[:remarks])
      end

      # A core file has the blocks of malloc, too.
      def leaked_blocks(file)
        require_relative "../file_kind"
        return {} unless file != "-" && FileKind.of(file) == :core

        { blocks: leaked(busy { Memprof::Core.open(file) }) }
      rescue Unsupported => e
        { blocks: { unknown: e.message } }
      end

      def leaked(core)
        other = core.overview[:uncounted]
        return { unknown: "the process uses #{other}, too, whose blocks memprof cannot read" } if other

        core.count(:leaked).merge(largest: core.summarize(:leaked)[:sizes].first)
      end

      def blocks(file, blocks)
        return "Note: whether C code leaks is not known: #{blocks[:unknown]}." if blocks[:unknown]
        return "No block of malloc is leaked." if blocks[:count].zero?

        largest = blocks[:largest]
        most = ", #{Units.count(largest[:count])} of them of #{Units.bytes(largest[:size])}" if largest
        "C code has leaked #{Units.bytes(blocks[:bytes])}: #{Units.plural(blocks[:count],
          "block")} of malloc " \
          "that nothing references#{most}. `memprof core #{shell(file)} summarize leaked` shows them."
      end

      def own_code(own) = { "Own code" => OwnCode.sentence(own), "Source" => own[:source] }

      def title(file, answer)
        count = answer[:suspects].size + answer[:more]
        "#{file}: #{Units.bytes(answer[:total])} reachable, #{Units.plural(count, "suspect")}"
      end

      def accumulated(suspect)
        Listing.new.column("Retained size", :bytes, :retained).column("Objects", :count, :count)
          .column("Class", :name, :class)
          .column("Allocated at", :place, :site, spare: true) { |held| site(held) }
          .column("Generations", :number, :generations, spare: true) { |one| generations(one[:generations]) }
          .rows(suspect[:accumulated])
      end

      def site(held)
        place = held[:site] && Cell.place(held[:site])
        place && held[:at_site] < held[:count] ? "#{place} (#{Units.count(held[:at_site])} of them)" : place
      end

      def many(files)
        answer = verdict(files.map { |file| [file] })
        answer = answer.merge(leaked_blocks(files.last)) if VerdictWording.new(answer).native?
        status = present(answer, further(files, answer)) do |page|
          VerdictText.new(page, answer).render(output_format)
        end
        exit_status(status, [answer])
      end

      # Dumps of each time. They are open one after the other: each takes memory.
      def verdict(times)
        verdict = nil
        times.each do |files|
          files.each_with_index do |file, index|
            heap = open_heap(file)
            verdict ||= Heap::Verdict.new
            busy { verdict.add(heap, beside: index.positive?) }
          end
        end
        answer = busy { verdict.answer(**@options.slice(:limit, :own)) }
        VerdictWording.complete(answer)
      end

      def further(files, answer)
        address = answer[:findings].dig(0, :example, :address)
        found = address ? [[["show", files.last, address], "one of the objects of the first finding"]] : []
        [*found, [["diff", *files], "all that changed, by class"],
          [["leaks", files.last], "what is large, whether it grows or not"]]
      end

      def live(pids)
        targets = pids.map { |pid| target_of(pid) }
        load_library
        require_relative "../heap"
        @options[:no_index] = true # each dump is read once, and its index is larger than the dump
        watch = Watch.new(targets, @terminal, seconds: @options.fetch(:for, Watch::DEFAULT),
          values: @options[:values], room: !@options[:force], attach: @options.fetch(:attach, false))
        watch.run { watch.groups.each { |group| preview(group) } }
        groups = watch.groups.filter_map { |group| judged(group) }
        groups = groups.map { |group, answer| with_blocks(watch, group, answer) }
        raise UsageError, "#{pids.join(", ")} ended before the second dump" if groups.empty?

        exit_status(present_groups(groups), groups.map(&:last), unknown: groups.size < watch.groups.size)
      end

      # The verdict on a group; nil if there is none, as all of it has ended.
      def judged(group)
        return if group.pids.empty? || group.rounds.size < 2

        [group, verdict(group.rounds.map { |round| round.values_at(*group.pids) })]
      end

      # If native memory grows, and no line is known that allocates it, what is leaked of it.
      def with_blocks(watch, group, answer)
        return [group, answer] unless group.malloc.empty? && VerdictWording.new(answer).native?

        pid = group.pids.first
        watch.check_room(pid)
        [group, answer.merge(blocks: Memprof::Core.of(pid) { |core| leaked(core) })]
      rescue UsageError, Error => e
        [group, answer.merge(blocks: { unknown: e.message })] # it may have ended, too
      end

      # A first verdict, in a line.
      def preview(group)
        _, answer = judged(group)
        @terminal.warn("#{group.name}, so far: #{VerdictWording.summary(answer)}") if answer
      end

      def present_groups(groups)
        answers = groups.map do |group, answer|
          malloc = group.malloc.map { |site, bytes| { site: site, bytes: bytes } }
          { name: group.name, processes: group.pids, ended: group.ended, dumps: group.rounds.map(&:values),
            malloc: malloc }.merge(answer)
        end
        group, answer = groups.max_by { |_, one| gained(one) }
        # The example is of the last process.
        dumps = group.rounds.map { |round| round[group.pids.last] }
        steps = [*further(dumps, answer), [["web", "--library"], "the same dumps in a browser"]]
        present({ groups: answers }, steps) do |page|
          next VerdictText.table(page, groups.flat_map { |_, one| one[:findings] }) if output_format == :csv

          groups.sort_by { |_, found| -gained(found) }
            .each { |one, found| VerdictText.new(page, found, group: one).render(output_format) }
        end
      end

      def gained(answer) = answer[:findings].sum { |finding| finding[:gained] }

      def exit_status(status, answers, unknown: false)
        return status unless @options[:fail]
        return 1 if answers.any? { |answer| VerdictWording.grows?(answer) }

        unknown || answers.any? { |answer| answer[:memory].nil? } ? 2 : status
      end

      def table(page, file, answer)
        suspects = answer[:suspects].map { |one| one.merge(dump: file) }
        held = ->(suspect) { suspect[:accumulated].first || {} }
        page.listing(Listing.new.column("File", :name, :dump)
          .column("Address", :address, :address) { |suspect| suspect[:object][:address] }
          .column("Object", :name, :object) { |suspect| suspect[:object][:text] }
          .column("Retained size", :bytes, :retained).column("Retained %", :percent, :percent)
          .column("Holds", :name, :holds) { |suspect| held.(suspect)[:class] }
          .column("Objects", :count, :count) { |suspect| held.(suspect)[:count] }
          .column("Allocated at", :place, :site)
          .column("Path", :name, :path) { |suspect| suspect[:path][:sentence] }
          .column("Own code", :place, :own)
          .rows(suspects))
      end
    end
  end
end
