# frozen_string_literal: true

require_relative "printable"

module Memprof
  # One tracking session: from #open to #finish it counts allocated objects, and until #close it sees which of
  # them are freed. All tracking in memprof uses a session.
  #
  # Sessions overlap: each sees all objects allocated on its thread or in its process while it records,
  # independently of other sessions. Between the return of #open and #finish memprof itself allocates no
  # objects.
  #
  # `Thread#kill`, `Timeout` and signals may end a thread at any moment. So the owner of a session must be
  # able to close it before it is open: .run does so, and longer-lived owners store it before #open. The
  # session's number is assigned inside #open, which cannot be interrupted.
  class Session
    MAX_STACK = 2048
    MAX_SAMPLE = 1_000_000_000
    INLINE_CACHES = %w[<callcache> <callinfo> <constcache>].freeze
    private_constant :INLINE_CACHES

    # Whether the session is open only because of leases, see Control::Leases.
    attr_accessor :leased

    # Opens a session for a block, and closes it however the block ends.
    def self.run(scope: :process, sample: nil, stack: 1, strings: false)
      session = prepare(scope: scope, sample: sample, stack: stack, strings: strings)
      begin
        session.open
        yield session
      ensure
        session.close
      end
    end

    # Creates a session without opening it. With `identities`, #counts distinguishes anonymous classes.
    def self.prepare(scope: :process, sample: nil, stack: 1, strings: false, identities: false)
      Support.check
      new(by_thread?(scope), interval(sample), frames(stack), strings ? true : false, identities)
    end

    def self.by_thread?(scope)
      return scope == :thread if scope == :process || scope == :thread

      raise ArgumentError, "scope must be :process or :thread, not #{scope.inspect}"
    end
    private_class_method :by_thread?

    def self.interval(sample)
      return 1 if sample.nil?
      return sample if sample.is_a?(Integer) && sample.between?(1, MAX_SAMPLE)

      raise ArgumentError, "sample must be nil or 1 to #{MAX_SAMPLE}, not #{sample.inspect}"
    end
    private_class_method :interval

    def self.frames(stack)
      return stack if stack.is_a?(Integer) && stack.between?(1, MAX_STACK)

      raise ArgumentError, "stack must be 1 to #{MAX_STACK}, not #{stack.inspect}"
    end
    private_class_method :frames

    def initialize(by_thread, sample, stack, strings, identities)
      @by_thread = by_thread
      @sample = sample
      @stack = stack
      @strings = strings
      @identities = identities
      @id = nil
      @leased = false
    end
    private_class_method :new

    # Begins to record. An open session is cleared, and starts again with the same options.
    def open = Native.open(self, @by_thread, @sample, @stack, @strings, @identities)
    alias_method :clear, :open

    # Opens it as the session of a module, unless that has an open one. Returns whether it did.
    def open_for(owner) = Native.open_for(owner, self, @by_thread, @sample, @stack, @strings, @identities)

    # Determines from now on when memory peaks, and at which sites.
    def watch_peak = Native.watch_peak(id)

    # Stops recording allocations; deallocations are still seen. A second call does nothing.
    def finish
      Native.finish(@id) if @id
    end

    # Runs the GC, so that the objects still alive are the retained ones.
    def self.collect
      Native.clear_stack
      Native.take_finalized
      GC.start
      # Objects referenced only by a finalizer are freed once it has run.
      GC.start if Native.take_finalized
    end

    def collect = Session.collect

    # Forgets everything recorded. A second call does nothing.
    def close = Native.close(self)

    def closed? = @id.nil?

    # Live objects by place and class, most first, ties by file, line and class.
    def stats = Native.stats(id).tap { warn_if_incomplete }

    # Objects by file, line and class, with the number of an anonymous class: `[live, [file, line, class_name,
    # number], [allocated, bytes], [retained, bytes]]`. Walks the heap if `retained`; otherwise without bytes.
    def counts(retained: false) = Native.counts(id, retained).tap { warn_if_incomplete }

    # #stats as one text, safe to print: a server requests it on each request.
    def stats_text(limit: nil, heading: "") = Native.stats_text(id, limit, heading)

    def stats_lines(limit: nil, caller: nil)
      Native.quiet do
        rows = stats
        rows = rows.reject { |row| inline_cache?(row, caller) } if caller
        rows = rows.first(limit) if limit
        rows.map { |count, *place| format("%7d %s", count, Printable.line(place.join(":"))) }
      end
    end

    # The profile so far. Walks the heap for the memsize of live objects; does not run the GC.
    def profile
      Native.profile(id, VERSION, RUBY_DESCRIPTION, Printable.utf8($PROGRAM_NAME)).tap { warn_if_incomplete }
    end

    def report(**filters) = Native.quiet { Report.new(profile, **filters) }

    # The session's number in the extension.
    def id
      raise Error, "memprof failed inside the VM's hook; tracking has stopped" if Native.broken?

      Support.detect_ractors
      @id || raise(NotRunning, "the session is closed: tracking was stopped; call Memprof.start first")
    end

    private

    def warn_if_incomplete
      Support.warn_of_lost_hook if @id && Native.incomplete?(@id)
    end

    # The VM fills inline caches when it runs a line for the first time.
    def inline_cache?((_, file, line, class_name), caller)
      line == caller.lineno && file == caller.path && INLINE_CACHES.include?(class_name)
    end
  end
end
