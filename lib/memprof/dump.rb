# frozen_string_literal: true

require_relative "clock"
require_relative "loading"
require_relative "dump/result"
require_relative "dump/options"
require_relative "dump/facts"
require_relative "dump/in_progress"
require_relative "dump/spool"
require_relative "dump/child"

module Memprof
  # Heap dumps: what Memprof.dump and Memprof.dump_all write, and where.
  #
  # The extension walks the heap and writes the formats. This side checks options, gathers what Ruby knows
  # about the process, and makes files appear atomically.
  module Dump
    class << self
      # Writes the whole heap.
      def heap(target, options, fork: false)
        settings = -> { Facts.whole(options) }
        write(target, options) { |file| fork ? Child.write(file, settings) : in_process(file, settings) }
      end

      # Writes the whole heap to a pipe or a socket that another process reads, in a forked child, and closes
      # it here as soon as the child has it.
      def stream(io, options)
        Loading.json
        beginning = Clock.now
        counts = named(nil) { Child.write(io, -> { Facts.whole(options) }) { io.close } }
        Result.from(counts, path: nil, format: options.format, seconds: Clock.now - beginning)
      ensure
        io.close
      end

      # Writes the live objects of a session.
      def session(target, session, options)
        pretty = target.nil? && options.text?
        settings = -> { Facts.header(options).merge(session: session.id) }
        write(target || $stdout, options, pretty: pretty) { |file| in_process(file, settings) }
      end

      # Writes the heap of a core file, by means of the block.
      def image(target, options)
        write(target, options) do |file|
          yield file
        rescue Error => e
          raise Failed, e.message
        end
      end

      # Runs a block in which the extension may fail; {named} adds where.
      def failing
        yield
      rescue NotRunning, Unsupported
        raise
      rescue Error => e
        raise Failed, e.message
      end

      private

      def write(target, options, pretty: false)
        Loading.json
        options.check_target(target)
        path = Output.file_path(target)
        beginning = Clock.now
        counts =
          if path
            named(path) { InProgress.open(path) { |file| yield(file) } }
          else
            named(nil) { Spool.to(target, pretty: pretty) { |file| yield(file) } }
          end
        Result.from(counts, path: path, format: options.format, seconds: Clock.now - beginning)
      end

      # The extension's error says what went wrong; only this side knows where.
      def named(path)
        yield
      rescue Failed => e
        raise Error, "cannot dump the heap#{" to #{path}" if path}: #{e.message}"
      end

      def in_process(file, settings)
        failing { Native.quiet { still { Native.dump_heap(file.fileno, settings.call) } } }
      end
    end

    # The dump failed; without the path.
    class Failed < Error; end
    private_constant :Failed

    # Runs a block in which the GC moves nothing: notes hold addresses that must still be valid when the heap
    # is walked.
    def self.still
      return yield unless GC.respond_to?(:auto_compact) && GC.auto_compact

      disabled = false
      begin
        # Both or neither, even if the thread is killed in the middle.
        Thread.handle_interrupt(Object => :never) { disabled = !GC.disable }
        yield
      ensure
        # Twice: an interrupt may arrive before interrupts are deferred.
        begin
          Thread.handle_interrupt(Object => :never) { GC.enable if disabled }
        ensure
          GC.enable if disabled
        end
      end
    end
  end
end
