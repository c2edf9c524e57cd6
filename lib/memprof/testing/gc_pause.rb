# frozen_string_literal: true

require_relative "../lock"

module Memprof
  module Testing
    # Keeps the collector off while blocks run, in any number of threads: the last one to leave turns it on
    # again. Only bytes need it: what an object of a C extension has outside its slot
    # is not known when it is freed.
    module GCPause
      @lock = Lock.new
      @holders = 0

      def self.hold
        entered = false
        release = -> {
          leave if entered
          entered = false
        }
        begin
          # Both or neither, also if the thread is ended in the middle.
          Thread.handle_interrupt(Object => :never) do
            enter
            entered = true
          end
          yield
        ensure
          # Twice: an interrupt may come here, before they are held off.
          begin
            Thread.handle_interrupt(Object => :never) { release.call }
          ensure
            Thread.handle_interrupt(Object => :never) { release.call }
          end
        end
      end

      def self.enter
        @lock.synchronize do
          @was_disabled = GC.disable if @holders.zero?
          @holders += 1
        end
      end
      private_class_method :enter

      def self.leave
        @lock.synchronize do
          @holders -= 1
          GC.enable if @holders.zero? && !@was_disabled
        end
      end
      private_class_method :leave
    end
  end
end
