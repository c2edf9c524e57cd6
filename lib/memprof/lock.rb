# frozen_string_literal: true

require_relative "clock"
require_relative "errors"

module Memprof
  # A lock that a signal handler may take, too. Ruby lets no handler wait for a Mutex, but it lets it try: so
  # a handler tries until it has it. It is refused only what it interrupted itself.
  class Lock
    # Seconds that a handler tries, at most: another thread holds it, and may wait for the one of the handler.
    PATIENCE = 5
    STEP = 0.001
    private_constant :PATIENCE, :STEP

    def initialize
      @mutex = Mutex.new
    end

    # Runs a block while no other thread runs one.
    def synchronize
      entered = false
      @mutex.synchronize do
        entered = true
        yield
      end
    rescue ThreadError
      raise if entered

      in_handler { yield }
    end

    private

    def in_handler
      deadline = Clock.now + PATIENCE
      until !@mutex.owned? && @mutex.try_lock
        refuse if @mutex.owned? || Clock.now > deadline
        sleep(STEP)
      end
      begin
        yield
      ensure
        @mutex.unlock
      end
    end

    def refuse
      raise Error, "memprof is at work where the signal came, and a signal handler can't wait for it: " \
                   "do it in a thread (Thread.new { ... })"
    end
  end
end
