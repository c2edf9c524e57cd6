# frozen_string_literal: true

module Memprof
  module Testing
    # Disables GC while blocks run, in any number of threads: the last one to leave enables it again. Only
    # bytes need this: the memory of a C extension's object outside its slot is unknown once it is freed.
    module GCPause
      @lock = Lock.new
      @holders = 0

      def self.hold(&block) = Bracket.run(-> { enter }, -> { leave }, &block)

      def self.enter
        @lock.synchronize do
          @was_disabled = GC.disable if @holders.zero?
          @holders += 1
        end
        true
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
