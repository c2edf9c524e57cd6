# frozen_string_literal: true

require_relative "errors"

module Memprof
  # Most programs that load memprof measure nothing: the extension is loaded when it is first used.
  autoload :Native, "#{__dir__}/native"
  private_constant :Native

  # Files that are loaded on demand, at no cost to a program before that.
  #
  # A signal handler can't load any, as `require` takes a lock. So a thread does it for the handler, and loads
  # everything it may need at once.
  module Loading
    # Maximum seconds that a handler waits: the interrupted program may be loading a file itself.
    PATIENCE = 5
    # Checks whether Ruby refuses locks. Shared, so that a check allocates nothing.
    PROBE = Mutex.new
    private_constant :PATIENCE, :PROBE

    @loaded = {}

    class << self
      # Loads the file of a constant of Memprof, before a measurement begins.
      #
      # By constant: a file loaded by name would load itself again where it names its own constant. The
      # command loads some files alone, which define the constant; then the rest is loaded by path, as Bundler
      # may have cleaned the load path.
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

      # Loads the extension, if need be, before a measurement begins.
      def native
        load(File.join(__dir__, "native")) if Memprof.autoload?(:Native)
      end

      def load(feature)
        undisturbed { require feature }
      rescue ThreadError
        loader = Thread.new { undisturbed { require feature } }
        loader.report_on_exception = false
        return if loader.join(PATIENCE)

        raise Error, "cannot load #{feature} in this signal handler: the program is loading a file; " \
                     "do it in a thread (Thread.new { ... })"
      end

      # Loads the gem json, but not before the program is running: under Bundler that might be another version
      # than in its lockfile. If another thread is loading it, this one waits.
      def json
        return if @json

        load("json")
        @json = true
      rescue LoadError
        # Loaded before, and since then the load path or the root has changed.
        raise unless defined?(JSON.generate)
      end

      private

      # Hidden from tracking. Ruby 3.1 crashes if it compacts the heap while compiling.
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
