# frozen_string_literal: true

require "fileutils"
require_relative "../autorun/notice"
require_relative "../paths"
require_relative "../screen_width"

module Memprof
  module CLI
    # Reports of the tracked processes: each has posted an Autorun::Notice in the run's directory.
    class Reports
      # A tracked process.
      Entry = Struct.new(:pid, :label, :ended, :moved, :forked, :waiting, :allocated, :paths,
        keyword_init: true) do
        # Whether a report is still expected.
        def running?
          return false if ended
          return true if moved

          Process.kill(0, pid)
          true
        rescue SystemCallError
          false
        end
      end
      private_constant :Entry

      LABEL_WIDTHS = (20..60) # of process names, depending on the screen
      LISTED = 20 # maximum number of reports listed
      NAMED = 4   # maximum number of processes without a report that are named
      private_constant :LABEL_WIDTHS, :LISTED, :NAMED

      def initialize(directory, terminal, shown:)
        @directory = directory
        @terminal = terminal
        @shown = shown
      end

      # Prints the report of the command itself, and says on stderr where the others are.
      def show(pid, settings)
        @entries = entries
        return explain_nothing if @entries.empty?

        @shown ? print_main(pid) : name_main(pid, settings)
        list(@entries)
        missing(@entries.reject(&:ended))
        unbooted(@entries.select { |entry| entry.ended && entry.waiting })
      end

      # Path of the report of the command itself, or of the Ruby that it ran; nil without one.
      def main_path(pid) = main(entries, pid)&.paths&.last

      # Removes the run's directory, unless it contains reports that were not shown.
      def clean
        return FileUtils.rm_rf(@directory) unless kept?

        # Running processes still need their notices.
        @entries.each { |entry| FileUtils.rm_f(File.join(@directory, entry.pid.to_s)) unless entry.running? }
      end

      private

      def kept?
        return false unless @entries
        return true if @entries.any?(&:running?)

        paths = @entries.flat_map(&:paths)
        paths.any? { |path| path.start_with?("#{@directory}/") && File.exist?(path) }
      end

      def entries
        files = Dir.children(@directory).grep(/\A\d+\z/).sort_by(&:to_i)
        files.map { |name| entry(name.to_i, File.binread(File.join(@directory, name))) }
      rescue Errno::ENOENT
        # A process changed its PID just now, and withdrew its old notice: look again.
        File.directory?(@directory) ? retry : []
      end

      # Split as bytes: a path may be in any encoding, and may be invalid in the locale's.
      def entry(pid, notice)
        lines = notice.split("\n").map { |line| line.split("=", 2) }
        pairs = lines.each { |line| line.each { |part| part.force_encoding(Encoding::UTF_8) } }
        values = pairs.to_h
        Entry.new(pid: pid, label: values["label"].to_s, allocated: values["allocated"].to_i,
          ended: values.key?("ended"), moved: values.key?("moved"), forked: values.key?("forked"),
          waiting: values.key?("waiting"),
          paths: pairs.filter_map { |name, value| value if name == "report" })
      end

      # The report of the command, or of the Ruby that it ran (as rake runs rspec) if that allocated more. For
      # a command other than Ruby (a shell script), that of the process that allocated most.
      def main(entries, pid)
        ended = entries.select { |entry| entry.ended && !entry.paths.empty? }
        own = ended.find { |entry| entry.pid == pid }
        (own ? [own, *ended.reject(&:forked)] : ended).max_by(&:allocated)
      end

      # Gives the main report the name without a process id, even if a Ruby that the command ran wrote it.
      def name_main(pid, settings)
        entry = main(@entries, pid)
        own = @entries.find { |candidate| candidate.pid == pid }
        return if entry.nil? || own.nil? || entry == own || own.paths.empty? || settings.output.include?("%p")

        paths = [own, entry].map { |candidate| candidate.paths.last }
        return if settings.special?(settings.output) || paths.uniq.one?

        rename(own, settings.path(pid, main: false))
        rename(entry, paths.first)
      end

      def rename(entry, path)
        File.rename(entry.paths.last, path)
        entry.paths[-1] = path
      end

      def print_main(pid)
        entry = main(@entries, pid)
        return unless entry

        path = entry.paths.last
        return unless (@printed = @terminal.print_file(path))

        File.unlink(path)
        entry.paths.pop
      end

      def list(entries)
        rows = entries.flat_map { |entry| entry.paths.map { |path| [entry, path] } }
        return if rows.empty?

        directory = common_directory(rows.map(&:last))
        names = rows.map { |_, path| Printable.line(path.delete_prefix(directory)) }
        width = (@terminal.width - names.map { |name| ScreenWidth.of(name) }.max - 25).clamp(LABEL_WIDTHS)
        lines = rows.zip(names).map { |(entry, _), name| line(entry, name, width) }
        lines[LISTED..] = "  and #{lines.size - LISTED} more" if lines.size > LISTED + 1
        place = " in #{directory.chomp("/")}" unless directory == "#{Paths.working_directory}/"
        heading = "#{"other " if @printed}reports#{place}, with allocated size:"
        @terminal.warn(heading, *lines)
      end

      def line(entry, name, width)
        label = ScreenWidth.left(Printable.fit(entry.label, width), width)
        format("  %7d  %s  %10s  %s", entry.pid, label, Units.bytes(entry.allocated), name)
      end

      # With a trailing slash; empty without a common directory.
      def common_directory(paths)
        directories = paths.map { |path| File.dirname(path) }.uniq
        directories.one? ? File.join(directories.first, "") : ""
      end

      def missing(entries)
        say("no report (ended by exit!, exec or an uncatchable signal)", entries.reject(&:running?))
        moved, running = entries.select(&:running?).partition(&:moved)
        say("continues in the background, will report at its end", moved)
        say("still running, will report at its end", running)
      end

      # When rake runs rspec, only one has examples; that is fine.
      def unbooted(entries)
        return if @printed || @entries.any? { |entry| !entry.waiting || !entry.ended }

        say("no report: #{Autorun::Notice::NOT_BOOTED}", entries)
      end

      def say(message, entries)
        @terminal.warn("#{message}: #{names(entries)}") unless entries.empty?
      end

      def names(entries)
        names = entries.map { |entry| "#{entry.pid} (#{Printable.fit(entry.label, LABEL_WIDTHS.min)})" }
        names[NAMED..] = "#{names.size - NAMED} more" if names.size > NAMED + 1
        names.join(", ")
      end

      def explain_nothing
        @terminal.warn("no report: the command ran no Ruby, or a Ruby that ignores RUBYOPT")
      end
    end
  end
end
