# frozen_string_literal: true

require_relative "clock"

module Memprof
  # Which Rubies can be tracked, and how well.
  module Support
    # Rubies whose NEWOBJ hook crashes in any program (https://bugs.ruby-lang.org/issues/19482).
    BROKEN_HOOKS = %w[3.2.0 3.2.1 3.2.2].freeze
    # Rubies that crash when a Ractor starts while a hook is active (Bug #18464).
    BROKEN_RACTORS = RUBY_VERSION < "3.1.4"
    CRASH = "Ruby #{RUBY_VERSION} crashes where a Ractor starts while objects are tracked (Bug #18464, " \
            "fixed in 3.1.4)"
    # Seconds that a Ractor may take to end.
    PATIENCE = 0.2
    private_constant :BROKEN_RACTORS, :CRASH, :PATIENCE

    module_function

    # Ruby's own error in that case, "ractor unsafe method", explains nothing.
    def check_ractor
      return if Ractor.current.equal?(Ractor.main)

      raise Unsupported, "memprof works in the main Ractor only: call it there"
    end

    # Raises if this Ruby can't be tracked now; warns once if tracking is limited.
    def check
      check_ractor
      check_ruby
      if BROKEN_RACTORS
        raise Unsupported, "#{CRASH}: start tracking when no Ractor runs" unless alone?
      elsif !@warned && ractors?
        warn_of_ractors
      end
    end

    def check_ruby
      @check_ruby ||= begin
        Loading.native
        refuse
        true
      end
      avoid_ractors
    end

    # A Ractor may take a moment to end after its result was taken. Waits for that once, not on each request.
    def alone?
      deadline = Clock.now + (@waited ? 0 : PATIENCE)
      sleep(0.001) until Ractor.count == 1 || Clock.now > deadline
      @waited = true
      detect_ractors
      Ractor.count == 1
    end

    # Allows hooks again if all Ractors have ended since they were removed.
    def detect_ractors
      doubt = BROKEN_RACTORS && Native.ractors_doubt
      Native.ractor_alone(doubt) if doubt && Ractor.count == 1
    end

    # Removes all hooks when a Ractor starts, on a Ruby that would crash. They are added again once it has
    # ended and numbers are requested.
    def avoid_ractors
      return if @ractors || !BROKEN_RACTORS

      Native.avoid_ractors
      @ractors = TracePoint.new(:call, :return) do |point|
        next Native.ractor_started if point.event == :return

        @waited = false
        warn_of_rest if Native.ractor_starts
      end
      @ractors.enable(target: Ractor.method(:new))
      detect_ractors
    end

    def refuse
      if BROKEN_HOOKS.include?(RUBY_VERSION)
        raise Unsupported,
          "Ruby #{RUBY_VERSION} crashes when allocations are tracked (Bug #19482): use 3.2.3 or later"
      end
      return if Native.gc_name == "default"

      raise Unsupported, "allocations cannot be tracked under the #{Native.gc_name} garbage collector: " \
                         "run Ruby with its default one (unset RUBY_GC_LIBRARY)"
    end

    # Before Ruby 4.0 the VM's hooks belong to one Ractor, and all of them end when a Ractor does.
    def ractors? = RUBY_VERSION < "4" && (Native.ractors_seen? || Ractor.count > 1)

    def warn_of_rest
      return if @warned

      @warned = true
      warn "memprof: #{CRASH}: what is allocated while there are several Ractors is not recorded, and " \
           "neither objects nor collections are traced."
    end

    # Warns once that the VM called no hook for a while, and does again.
    def warn_of_lost_hook
      return warn_of_rest if BROKEN_RACTORS
      return if @warned_of_lost_hook

      @warned_of_lost_hook = true
      warn "memprof: Ruby #{RUBY_VERSION} turned tracking off when a Ractor was freed (Bug #19112, fixed " \
           "in Ruby 4.0): objects that were allocated since are missing. Tracking goes on from here."
    end

    def warn_of_ractors
      @warned = true
      warn "memprof: Ractors are running: Ruby #{RUBY_VERSION} reports only the objects of the " \
           "Ractor that started tracking, and of none once a Ractor has ended (Bug #19112). " \
           "Ruby 4.0 reports all."
    end
  end
  private_constant :Support
end
