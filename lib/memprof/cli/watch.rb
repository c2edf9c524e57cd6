# frozen_string_literal: true

require_relative "../cell"
require_relative "../library"
require_relative "../memory"
require_relative "scratch"

module Memprof
  module CLI
    # Dumps running processes several times, for a verdict on what grows in them. A process is asked over its
    # socket if it has one; otherwise it is copied, loads nothing, and is paused for milliseconds.
    class Watch
      include Dumping

      # Processes that run the same code, like the workers of a server: their heaps count together. Each round
      # has the dumps of the running ones, by process id.
      Group = Struct.new(:targets, :rounds, :malloc, :sample) do
        def name = targets.first.name

        # Processes that ran in all rounds, to the end of the last one.
        def pids = rounds.map(&:keys).reduce(:&) || []

        # Adds the dumps of a round. A group that has ended ignores later rounds.
        def add(round)
          @over = true if round.empty? || (rounds.any? && (pids & round.keys).empty?)
          rounds << round unless @over
        end

        def over? = @over

        def ended = targets.map(&:pid) - pids
      end

      # Seconds between two dumps of a long watch. A short one has three dumps.
      BETWEEN = 300
      MOST = 13 # dumps
      TIMEOUT = 300 # seconds for a dump
      # Values are omitted: a program's memory may contain secrets.
      WANTED = { format: :binary, values: :none }.freeze
      GLANCE = 0.2
      SAMPLE = 8 # in an attached process, one in this many objects is tracked
      TRIES = 2
      TO_LOAD = 30 # seconds for it to load memprof
      private_constant :BETWEEN, :MOST, :TIMEOUT, :WANTED, :GLANCE, :SAMPLE, :TRIES, :TO_LOAD

      attr_reader :groups

      # With `room: false`, copies may reach the cgroup's limit. With `attach`, memprof is loaded into
      # processes without it; their groups then also have the lines whose malloc'ed memory is still live.
      def initialize(targets, terminal, seconds:, values: nil, room: true, attach: false)
        @terminal = terminal
        @seconds = seconds
        @wanted = values ? WANTED.merge(values: values) : WANTED
        @room = room
        @attach = attach
        @attachments = {}
        @pauses = Hash.new(0)
        @asked = targets.map(&:pid)
        targets.each(&:refuse_stopped)
        @groups = group(targets)
        raise UsageError, "#{processes(targets)} no Ruby" if @groups.empty?
      end

      # Yields after the second dump, if more follow. Ctrl-C ends it early once there are two.
      def run
        announce
        attach if @attach
        moments = []
        count.times do |number|
          wait_until(moments.last + gap(moments)) if number.positive?
          moments << Clock.now
          Scratch.directory { |directory| round(directory, number) }
          yield if number == 1 && count > 2
          break if @groups.all?(&:over?)
        end
        say_pauses
        ask_for_malloc
      rescue Interrupt
        if @groups.none? { |group| group.rounds.size > 1 }
          @terminal.warn("interrupted before the second dump: nothing is known yet")
          raise
        end
        @terminal.warn("interrupted: this is the verdict so far")
      ensure
        @attachments.each_value(&:close)
        @terminal.progress(nil)
      end

      # Whether the user named a process of the group, rather than one of its ancestors.
      def asked_for?(group) = group.targets.any? { |target| @asked.include?(target.pid) }

      # The copy may grow as large as the process, if that writes to all its memory meanwhile.
      def check_room(pid)
        return unless @room

        memory = Memprof::Memory.of(pid)
        room = memory.room
        return if room.nil? || room >= memory.private_bytes

        raise UsageError, "a copy of process #{pid} may take #{Units.bytes(memory.private_bytes)}, and its " \
                          "cgroup has room for #{Units.bytes(room)}; --force-copy copies it anyway"
      end

      private

      def count = [[(@seconds / BETWEEN).ceil, 2].max + 1, MOST].min

      # After a dump that came late, the next one is as late: if it came sooner, growth would seem to slow.
      def gap(moments)
        planned = @seconds.fdiv(count - 1)
        moments.size > 1 ? [planned, moments[-1] - moments[-2]].max : planned
      end

      # The targets and their descendants, without this command and its own, grouped by code.
      def group(targets)
        own = [Process.pid, *ProcessFacts.new(Process.pid).descendants]
        own = [Process.pid] if (own & @asked).any?
        all = targets.flat_map { |target| [target, *target.descendants] }.uniq(&:pid)
        all.reject! { |target| own.include?(target.pid) }
        ruby, others = all.partition { |target| target.answers? || target.ruby? }
        (targets & others).each(&:refuse_forbidden)
        ruby.group_by(&:code).values.map { |alike| Group.new(alike, [], []) }
      end

      def processes(targets)
        pids = targets.map(&:pid)
        pids.one? ? "process #{pids.first} runs" : "processes #{pids.join(", ")} run"
      end

      def announce
        @groups.each do |group|
          pids = group.targets.map(&:pid)
          word = pids.one? ? "process" : "processes"
          @terminal.warn("#{word} #{pids.join(", ")} (#{group.name}): #{plan(group)}")
        end
      end

      def plan(group)
        values = @wanted[:values]
        loads = @attach && !group.targets.all?(&:answers?)
        "#{count} dumps in #{Cell.text(@seconds, :seconds)}, " \
          "#{values == :none ? "without values" : "with values (#{values})"}" \
          "#{"; loads memprof, which tracks one object in #{SAMPLE}, and malloc" if loads}"
      end

      # A process that has loaded memprof is asked over its socket instead.
      def attach
        @groups.flat_map { |group| group.targets.map { |target| [group, target] } }.each do |group, target|
          next if target.answers?

          attachment = Attachment.new(target, ProcessCopy.new(target).library, @terminal)
          request = { sample: SAMPLE, values: @wanted[:values].to_s }
          @attachments[target.pid] = attachment.serve(request, seconds: TO_LOAD)
          group.sample = SAMPLE
        end
      end

      def wait_until(moment)
        while (left = moment - Clock.now).positive?
          @terminal.progress("next dump in #{left.ceil} s; Ctrl-C ends it early")
          sleep([left, GLANCE].min)
        end
      end

      # An interrupted round is dropped.
      def round(directory, number)
        rounds = @groups.map do |group|
          next {} if group.over?

          alive = number.zero? ? group.targets : group.targets.select { |one| group.pids.include?(one.pid) }
          alive.filter_map { |target| dumped(target, directory, number) }.to_h
        end
        @groups.zip(rounds) { |group, round| group.add(round) }
      end

      # Its process id and the dump. Nil for a process that has ended since the first dump.
      def dumped(target, directory, number)
        tries ||= 0
        check_room(target.pid)
        path = File.join(directory, "#{target.pid}.memprof")
        attachment = @attachments[target.pid]
        attachment ? attached(target, attachment, path) : dump_of(target, path, @wanted, TIMEOUT)
        [target.pid, keep(path, target, number)]
      rescue UsageError, Error, SystemCallError
        # A running process is copied at an arbitrary point.
        retry if target.running? && (tries += 1) < TRIES
        raise if target.running? || (number.zero? && @asked.include?(target.pid))

        @terminal.warn("process #{target.pid} ended")
        nil
      end

      # Lines and bytes, of all processes of a group.
      def ask_for_malloc
        @groups.each do |group|
          lines = @attachments.slice(*group.pids).values.flat_map { |attachment| malloc_lines(attachment) }
          bytes = lines.group_by(&:first).transform_values { |same| same.sum(&:last) }
          group.malloc = bytes.sort_by { |_, size| -size }
        end
      end

      # The process may answer anything, or have ended.
      def malloc_lines(attachment)
        rows = Array(attachment.ask("malloc")["lines"]).grep(Hash)
        rows.map { |row| row.values_at("site", "bytes") }
          .select { |site, bytes| site.is_a?(String) && bytes.is_a?(Integer) }
      rescue UsageError
        []
      end

      def attached(target, attachment, path)
        reader, writer = IO.pipe(binmode: true)
        attachment.ask("dump", pass: writer)
        writer.close
        Output.open(path) { |file| receive(target, attachment, reader, file, TIMEOUT) }
      ensure
        [reader, writer].compact.each(&:close)
        @terminal.progress(nil)
      end

      def keep(path, target, number)
        entry = library.take(app: target.name, name: "#{target.name}, dump #{number + 1} of #{count}",
          facts: { pid: target.pid }) { |part| IO.copy_stream(path, part) }
        entry.path
      end

      def library = @library ||= Library.new(Library.default_directory)

      # The user did not ask for these settings: a process that answers only to its signal uses its own.
      def refuse_wanted(target); end

      def copied(target, pause)
        @pauses[target.pid] = [@pauses[target.pid], pause].max
      end

      def say_pauses
        return if @pauses.empty?

        longest = (@pauses.values.max * 1000).round(1)
        @terminal.warn("copies were dumped; no process was paused for more than #{longest} ms")
      end
    end
  end
end
