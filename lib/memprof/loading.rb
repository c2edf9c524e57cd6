# frozen_string_literal: true

require_relative "errors"
require_relative "native"

module Memprof
  # Files that are loaded when they are needed, which costs a program nothing before.
  #
  # A signal handler can't load any, as `require` takes a lock. So a thread does it for the handler, and loads
  # at once all that it may want.
  module Loading
    # Seconds that a handler waits at most: where it came, the program may be loading a file itself.
    PATIENCE = 5
    # Asked where Ruby refuses locks. One for all, so that asking allocates nothing.
    PROBE = Mutex.new
    private_constant :PATIENCE, :PROBE

    @loaded = {}

    class << self
      # Loads what a constant of Memprof stands for, before what is measured begins.
      #
      # By the constant: a file that is loaded by its name would load itself again where it names its own. The
      # command loads some files alone, which define the constant; then the rest is loaded by its path, as
      # Bundler may have cleaned the load path.
      def part(name)
        return if @loaded[:Everything]

        if handler?
          load(File.join(__dir__, "everything"))
          name = :Everything
        elsif Memprof.autoload?(name)
          undisturbed { Memprof.const_get(name) }
        elsif !@loaded[name]
          load(File.join(__dir__, name.to_s.downcase))
        end
        @loaded[name] = true
      end

      def load(feature)
        undisturbed { require feature }
      rescue ThreadError
        loader = Thread.new { undisturbed { require feature } }
        loader.report_on_exception = false
        return if loader.join(PATIENCE)

        raise Error, "can't load #{feature} in this signal handler: the program is loading a file; " \
                     "do it in a thread (Thread.new { ... })"
      end

      # The gem json, which memprof does not load before the program is under way: under Bundler that would be
      # another one than its lockfile has. Another thread may be loading it: then this one waits.
      def json
        return if @json

        load("json")
        @json = true
      rescue LoadError
        # Loaded before, and the load path has changed since, or the root.
        raise unless defined?(JSON.generate)
      end

      private

      # Nothing that is tracked sees it. Ruby 3.1 crashes where it compacts the heap while it compiles.
      def undisturbed(&)
        compacts = RUBY_VERSION < "3.2" && GC.respond_to?(:auto_compact) && GC.auto_compact
        GC.auto_compact = false if compacts
        Native.quiet(&)
      ensure
        GC.auto_compact = true if compacts
      end

      # Whether this is a signal handler.
      def handler?
        PROBE.synchronize { false }
      rescue ThreadError
        true
      end
    end
  end
end
