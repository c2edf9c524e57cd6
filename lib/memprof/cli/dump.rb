# frozen_string_literal: true

require_relative "../dump/options"

module Memprof
  module CLI
    # `memprof dump`: the heap of a running process, as a file here.
    class Dump < Command
      include LiveProcess
      include Dumping

      SUMMARY = "dumps the heap of a running process"
      USAGE = "[OPTIONS] PID"
      DETAILS = <<~TEXT
        A process that has loaded memprof/signal forks a child that writes the dump.
        memprof copies any other process, and the copy writes the dump (on Linux, as its
        user or as root, with permission to trace it). Only the fork pauses the process.
        memprof writes the file here, readable by its owner only, and prints its name. A
        dump contains what the program has in memory, even passwords; --contents hash,
        length or none leaves contents out.

        With --output the extension selects the format (.memprof is binary) and the
        compression (.gz, .zst). Without it the file is named after the application.

        memprof dump also works from outside a container. --children dumps all processes
        that PID has forked, such as the workers of a puma cluster, one after the other,
        but not PID itself, and puts each process id before the extension of --output.

        With --blocks the dump also has the blocks of malloc: memprof copies the process
        (even if it has loaded memprof/signal) and reads Ruby and C from the copy. Such
        a dump has no allocation sites.

        Examples:
          memprof dump 4711
          memprof dump 4711 --output heap.memprof --contents hash
          memprof dump 4711 --children
      TEXT

      def call(arguments)
        target = target(arguments)
        @out = output_path(@options[:output], "--output") if @options[:output]
        raise UsageError, "cannot write --output -: a file is required" if @options[:output] == "-"

        @wanted = wanted
        return dump_children(target) if @options[:children]

        dump(target, @out)
        0
      end

      private

      # The process's own settings decide the rest. A file's extension selects format and compression.
      def wanted
        wanted = { format: @options[:format], values: @options[:contents] }.compact
        return wanted unless @out

        known = Memprof::Dump::Options.new(@out, format: @options[:format])
        { format: known.format, compression: known.compression }.merge(wanted)
      rescue ArgumentError => e
        raise UsageError, e.message
      end

      def dump_children(target)
        children, silent = target.descendants.partition do |child|
          child.answers? || child.ruby? || child.forbidden?
        end
        raise UsageError, "process #{target.pid} has no children that run Ruby" if children.empty?

        dumped = children.map { |child| dumped?(child) }
        @terminal.warn("no Ruby in #{silent.map(&:pid).join(", ")}") unless silent.empty?
        dumped.all? ? ExitStatus::DONE : ExitStatus::FAILED
      end

      # A child that fails, for example because it has ended, does not prevent dumping the others.
      def dumped?(child)
        dump(child, @out && numbered(@out, child.pid))
        true
      rescue UsageError, Error, SystemCallError => e
        @terminal.warn(e.message)
        false
      end

      def numbered(path, pid)
        directory, name = File.split(path)
        ending = name[1..].to_s[/\.[a-z.]+\z/].to_s
        File.join(directory, "#{name.delete_suffix(ending)}.#{pid}#{ending}")
      end

      def dump(target, out)
        seconds = option(:timeout)
        out = @options[:blocks] ? with_blocks(target, out, @wanted) : dump_of(target, out, @wanted, seconds)
        @terminal.puts(out)
        @terminal.warn("#{Units.bytes(File.size(out))}; next: memprof leaks #{Suggestion.word(out)}")
      end
    end
  end
end
