# frozen_string_literal: true

# A minimal Fiber scheduler: while a fiber sleeps or waits, others run.
class FiberScheduler
  def initialize
    @sleeping = {}
    @ready = Queue.new
  end

  # Runs until no fiber is left.
  def run
    until @sleeping.empty? && @ready.empty?
      @ready.pop.call until @ready.empty?
      due = @sleeping.select { |_, time| time <= now }.keys
      due.each { |fiber| @sleeping.delete(fiber) }
      due.each(&:resume)
      Thread.pass
    end
  end

  alias close run

  def fiber(&block)
    Fiber.new(blocking: false, &block).tap(&:resume)
  end

  def kernel_sleep(seconds = 0)
    @sleeping[Fiber.current] = now + seconds
    Fiber.yield
  end

  def io_wait(io, events, timeout)
    kernel_sleep(0.001) until (ready = IO.select([io], nil, nil, 0)) || timeout
    ready ? events : 0
  end

  def block(_blocker, timeout = nil)
    kernel_sleep(timeout || 0.001)
    true
  end

  def unblock(_blocker, fiber)
    @sleeping.delete(fiber) && @ready << fiber.method(:resume)
  end

  # Ruby 4.0 and later: another fiber or thread closed the IO that this fiber waits for.
  def fiber_interrupt(fiber, exception)
    @sleeping.delete(fiber) && @ready << -> { fiber.raise(exception) }
  end

  private

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
