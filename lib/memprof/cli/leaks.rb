# frozen_string_literal: true

require_relative "../dump/options"
require_relative "../verdict_wording"

module Memprof
  module CLI
    # `memprof leaks`: what grows in a process and why, or what retains a large part of a heap.
    class Leaks < HeapCommand
      include LiveProcess

      SUMMARY = "shows what grows in a process, or what is large in a dump"
      USAGE = "[OPTIONS] FILE... | PID..."
      DETAILS = <<~TEXT
        Given a PID, leaks dumps the process three times within a minute (--for) and
        shows what grows, what retains it, where it was allocated, and why it is
        retained, as far as the heap shows that. The process need not have loaded
        memprof: if it has not, leaks copies it, which pauses it for milliseconds only.
        Allocation lines are known if the process has loaded memprof/signal, or with
        --attach. leaks also watches the processes that PID has forked, and merges those
        that run the same code, such as the workers of a server. The dumps stay in the
        library (`memprof web --library`), without values unless you pass --contents.
        Press Ctrl-C to end it early.

        Several files are dumps of one process, the oldest first, and give the same
        answer. Objects whose paths from the roots differ only in indices and keys count
        together. memprof's own objects do not count.

        A single dump cannot show growth. leaks then shows what is large: objects with
        similar paths, or a few objects that retain much. Age is the number of GC runs
        since they were allocated.

        Application is the application's line behind the objects: the line that called
        into a gem, or the line of the block that allocated them. The application is
        every file outside installed gems and the standard library, or the files whose
        paths match --own.

        Examples:
          memprof leaks 4711
          memprof leaks --for 10m --fail 4711
          memprof leaks heap.memprof
          memprof leaks --own '/engines/shop/' heap.memprof
          memprof leaks 1.memprof 2.memprof 3.memprof 4.memprof
      TEXT
      # Options for each kind of input.
      OF_PROCESSES = %i[for attach contents force_copy].freeze
      OF_ONE_DUMP = %i[threshold].freeze
      private_constant :OF_PROCESSES, :OF_ONE_DUMP

      def call(arguments)
        arguments = with_pid(arguments)
        raise UsageError, "FILE or PID is missing; see `memprof help leaks`" if arguments.empty?

        pids, files = arguments.partition { |argument| pid?(argument) }
        raise UsageError, "expected files or process ids, not both" if pids.any? && files.any?

        refuse_neither(files)
        refuse_options(OF_PROCESSES, "needs a PID") if pids.empty?
        refuse_options(%i[blocks], "needs core files") if pids.any?
        refuse_options(OF_ONE_DUMP, "needs a single FILE") unless files.one?
        refuse_options(%i[fail], "needs a PID or several files") if files.one?
        return live(pids) if pids.any?

        files.each { |file| check_readable(file) }
        dumps(files)
      end

      private

      # A mistyped PID counts as a file, for which the options of processes are invalid.
      def refuse_neither(files)
        return if OF_PROCESSES.none? { |option| @options.key?(option) }

        neither = files.find { |file| file != "-" && !File.exist?(file) } or return
        raise UsageError, "\"#{neither}\" is neither a process id nor a file"
      end

      # A core file also has malloc blocks.
      def leaked_blocks(file)
        core = core_of(file)
        core ? { blocks: leaked(core) } : {}
      rescue Unsupported => e
        { blocks: { unknown: e.message } }
      end

      # The core file, if it is one. Both its heap and its blocks are read from it.
      def core_of(file)
        require_relative "../core"
        return unless file != "-" && Memprof::Core.core?(file)

        @core ||= busy { Memprof::Core.open(file) }
      end

      def leaked(core)
        other = core.damage[:uncounted]
        return { unknown: "the process uses #{other}, too, whose blocks memprof cannot read" } if other

        core.count(:leaked).merge(largest: core.summarize(:leaked)[:sizes].first)
      end

      def dumps(files)
        answer = verdict(files.map { |file| [file] }) { |file| core_of(file) if file == files.last }
        # With their blocks, the dumps themselves know.
        native = answer[:blocks].nil? && (files.one? || VerdictWording.new(answer).native?)
        answer = answer.merge(leaked_blocks(files.last)) if native
        steps = [*further(files, answer), [["web", *files], "the same in a browser"]]
        status = present(answer, steps) do |page|
          file = files.first if files.one?
          VerdictText.new(page, answer, file: file, blocks: @options[:blocks]).render(output_format)
        end
        exit_status(status, [answer])
      end

      # The verdict on the dumps of each time. They are opened one after the other, as each takes memory. The
      # block may return the core file.
      def verdict(times)
        verdict = nil
        times.each do |files|
          files.each_with_index do |file, index|
            heap = open_heap(file) { yield(file) if block_given? }
            verdict ||= Heap::Verdict.new
            busy { verdict.add(heap, beside: index.positive?) }
          end
        end
        answer = busy { verdict.answer(**chosen(:limit, :own, :threshold)) }
        VerdictWording.complete(answer)
      end

      def further(files, answer)
        address = answer[:findings].dig(0, :example, :address)
        found = address ? [[["show", files.last, address], "one of the objects of the first finding"]] : []
        return [*found, [["top", files.last], "the largest objects"]] if files.one?

        [*found, [["diff", *files], "all that changed, by class"],
          [["leaks", files.last], "what is large, whether it grows or not"]]
      end

      def live(pids)
        targets = pids.map { |pid| target_of(pid) }
        load_library
        require_relative "../heap"
        @options[:no_index] = true # each dump is read once, and its index is larger than the dump
        watch = Watch.new(targets, @terminal, seconds: option(:for),
          values: @options[:contents], room: !@options[:force_copy], attach: @options.fetch(:attach, false))
        watch.groups.each { |group| say_agents(group) }
        watch.run { watch.groups.each { |group| preview(group) } }
        groups = watch.groups.filter_map { |group| judged(group) }
        groups = groups.map { |group, answer| with_blocks(watch, group, answer) }
        raise UsageError, "#{pids.join(", ")} ended before the second dump" if groups.empty?

        unknown = (watch.groups - groups.map(&:first)).any? { |group| watch.asked_for?(group) }
        exit_status(present_groups(groups), groups.map(&:last), unknown: unknown)
      end

      # What agents of its processes know already.
      def say_agents(group)
        lines = AgentNotes.of(group.targets)
        @terminal.warn(*lines) if lines.any?
      end

      # The verdict on a group; nil if all its processes have ended.
      def judged(group)
        return if group.pids.empty? || group.rounds.size < 2

        [group, verdict(group.rounds.map { |round| round.values_at(*group.pids) })]
      end

      # Adds leaked blocks if native memory grows and no allocating line is known.
      def with_blocks(watch, group, answer)
        return [group, answer] unless group.malloc.empty? && VerdictWording.new(answer).native?

        pid = group.pids.first
        watch.check_room(pid)
        [group, answer.merge(blocks: Memprof::Core.of(pid) { |core| leaked(core) })]
      rescue UsageError, Error => e
        [group, answer.merge(blocks: { unknown: e.message })] # the process may have ended, too
      end

      # A preliminary verdict, in one line.
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
        # The example is from the last process.
        dumps = group.rounds.map { |round| round[group.pids.last] }
        steps = [*lines_of(group, answer), *further(dumps, answer),
          [["web", "--library"], "the same dumps in a browser"]]
        present({ groups: answers }, steps) do |page|
          next VerdictText.table(page, groups.flat_map { |_, one| one[:findings] }) if output_format == :csv

          groups.sort_by { |_, found| -gained(found) }
            .each { |one, found| VerdictText.new(page, found, group: one).render(output_format) }
        end
      end

      # Suggested if the dumps lack the lines.
      def lines_of(group, answer)
        findings = answer[:findings]
        return [] if @options[:attach] || findings.empty? || findings.any? { |one| one[:lines].any? }

        [[["leaks", "--attach", *group.pids.map(&:to_s)], "also the lines that allocate it"]]
      end

      def gained(answer) = answer[:findings].sum { |finding| finding[:gained] }

      def exit_status(status, answers, unknown: false)
        return ExitStatus::FAILED if answers.any? { |answer| answer[:unknown] }
        return status unless @options[:fail]
        return ExitStatus::FOUND if answers.any? { |answer| VerdictWording.grows?(answer) }

        unknown ||= answers.any? { |answer| answer[:memory].nil? && answer[:blocks].nil? }
        unknown ? ExitStatus::FAILED : status
      end
    end
  end
end
