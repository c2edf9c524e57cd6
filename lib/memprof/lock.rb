# frozen_string_literal: true

require_relative "clock"
require_relative "errors"

module Memprof
  # A lock that a signal handler may take, too. In a handler, Ruby forbids waiting for a Mutex but allows
  # try_lock: so a handler tries until it succeeds. It only fails if it interrupted the lock's owner itself.
  class Lock
    # Maximum seconds that a handler tries: the owner may be waiting for the handler's thread.
    PATIENCE = 5
    STEP = 0.001
    private_constant :PATIENCE, :STEP

    def initialize
      @mutex = Mutex.new
    end

    # Runs a block under mutual exclusion.
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
      raise Error, "the signal interrupted memprof itself; do it in a thread (Thread.new { ... })"
    end
  end
end
