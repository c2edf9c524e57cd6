# frozen_string_literal: true

module Memprof
  module Testing
    # Keeps the collector off while blocks run, in any number of threads: the last one to leave turns it on
    # again. Only bytes need it: the memory that a dead object had outside its slot is not known any more.
    #
    # @api private
    module GCPause
      @lock = Mutex.new
      @holders = 0

      # @yield with the collector off
      # @return [Object] what the block returns
      def self.hold
        enter
        begin
          yield
        ensure
          leave
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
