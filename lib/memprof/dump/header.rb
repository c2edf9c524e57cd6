# frozen_string_literal: true

require "etc"
require_relative "../printable"
require_relative "../version"

module Memprof
  module Dump
    # The first line of a dump: its process, the time, and the state of the GC.
    module Header
      VERSION = 1
      private_constant :VERSION

      class << self
        def json(options)
          JSON.generate({
            _id: "header", type: "header", format: "memprof", version: VERSION, **process(options),
            ruby: RUBY_DESCRIPTION, ruby_version: RUBY_VERSION, platform: RUBY_PLATFORM,
            memprof: Memprof::VERSION, **moment, **collector,
            # If only memprof/heap is loaded, tracking has not been started.
            tracking: Memprof.respond_to?(:running?) && Memprof.running?
          })
        end

        # A time, in the form of the header.
        def moment(time = Time.now)
          time = time.getutc
          { time: time.strftime("%FT%T.%6NZ"), time_us: (time.to_i * 1_000_000) + time.usec }
        end

        private

        def process(options)
          facts = { pid: Process.pid, ppid: Process.ppid, values: options.values }
          return facts unless options.contents?

          facts.merge(hostname: hostname, program: Printable.utf8($PROGRAM_NAME),
            arguments: ARGV.map { |argument| Printable.utf8(argument) })
        end

        # A missing or invalid name must not prevent a dump.
        def hostname
          Loading.load("etc") unless defined?(Etc) # not loaded in a process that `memprof attach` has entered
          Printable.utf8(Etc.uname[:nodename])
        rescue SystemCallError
          nil
        end

        # Where objects may have moved, the same address in two dumps may be two objects.
        def collector
          moves = GC.respond_to?(:auto_compact) && GC.auto_compact ? true : false
          compactions = GC.stat[:compact_count].to_i
          { generation: GC.count, gc_count: GC.count, compactions: compactions, auto_compact: moves,
            moved: moves || compactions.positive?, gc: GC.stat, rss: ProcNotes.rss }
        end
      end
    end
  end
end
